/** One sequence's temperature control: its law, where it stands, and how it went. */
import {
  controlTemperature,
  startTemperature,
  type TemperatureControl,
  temperatureControl,
  type TemperatureState,
} from "../entropic/temperature.ts";
import { temperedRow } from "../entropic/tempered_row.ts";
import type { SamplingParams, TemperatureReport } from "./engine.ts";

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

  /**
   * The temperature to draw the next token with.
   *
   * @param entropy Of the model's own distribution, in nats.
   * @param logits As the sampler is to see them, shape [vocabularySize].
   */
  next(entropy: number, logits: Float32Array): number {
    const at = temperedRow(logits);
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
