/** One sequence's temperature control: its law, where it stands, and how it went. */
import {
  controlTemperature,
  startTemperature,
  type TemperatureControl,
  temperatureControl,
  type TemperatureState,
} from "../../entropic/temperature.ts";
import type { Uncertainty } from "../backend.ts";
import type { SamplingParams, TemperatureReport } from "../engine.ts";

export class TemperatureLoop {
  readonly #control: TemperatureControl;
  #state: TemperatureState;

  private constructor(control: TemperatureControl, temperature: number) {
    this.#control = control;
    this.#state = startTemperature(control, temperature);
  }

  static of({ temperature = 1, temperatureControl: given }: SamplingParams) {
    return given && new TemperatureLoop(temperatureControl(given), temperature);
  }

  /** The one temperature that `next` is going to look at; undefined where the law searches for it. */
  get known(): number | undefined {
    return this.#control.law === "same-step" ? undefined : Math.exp(this.#state.logT);
  }

  /**
   * The temperature to draw the next token with.
   *
   * @param entropy Of the model's own distribution, in nats.
   * @param at What the distribution that the sampler is to see is like at a temperature.
   */
  next(entropy: number, at: (temperature: number) => Uncertainty): number {
    const { temperature, state } = controlTemperature(this.#control, this.#state, { entropy }, at);
    this.#state = state;
    return temperature;
  }

  report(): TemperatureReport {
    const { sums } = this.#state;
    const mean = (sum: number) => sums.steps === 0 ? 0 : sum / sums.steps;
    const meanEntropy = mean(sums.entropy);
    return {
      law: this.#control.law,
      steps: sums.steps,
      railShare: mean(sums.onRail),
      meanTemperature: mean(sums.temperature),
      meanEntropy,
      entropyDeviation: Math.sqrt(Math.max(0, mean(sums.entropySquared) - meanEntropy ** 2)),
      meanVarentropy: mean(sums.varentropy),
      meanGain: mean(sums.gain),
    };
  }
}
