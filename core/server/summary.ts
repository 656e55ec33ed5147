/** Usage, timings and entropy of a whole answer, gathered from the ends of its choices. */
import type { AttentionReport, TemperatureReport } from "../engine/engine.ts";
import { addCost, efficiency, NO_COST } from "../entropic/cost.ts";
import type { ChoiceEnd } from "./choice.ts";
import type { Entropic } from "./schemas/entropic.ts";
import type { Timings, Usage } from "./schemas/responses.ts";

export class Summary {
  #choicesPerPrompt: number;
  #entropyFloor: number;
  #ends = new Map<number, ChoiceEnd>();

  /**
   * @param choicesPerPrompt Choices `k * n` to `k * n + n - 1` answer prompt `k`.
   * @param entropyFloor What lies below it added nothing to tau; nats.
   */
  constructor(choicesPerPrompt: number, entropyFloor: number) {
    this.#choicesPerPrompt = choicesPerPrompt;
    this.#entropyFloor = entropyFloor;
  }

  add(index: number, end: ChoiceEnd): void {
    this.#ends.set(index, end);
  }

  get usage(): Usage {
    let prompt = 0;
    let cached = 0;
    const completion = this.#completionTokens;
    for (const [index, { event }] of this.#ends) {
      if (index % this.#choicesPerPrompt !== 0) continue;
      prompt += event.usage.promptTokens;
      cached += event.usage.cachedTokens;
    }
    return {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached },
    };
  }

  get timings(): Timings {
    const predicted = this.#completionTokens;
    const ends = [...this.#ends.values()].map(({ event }) => event);
    const cached = sum(ends.map(({ usage }) => usage.cachedTokens));
    const computed = sum(ends.map(({ usage }) => usage.promptTokens)) - cached;
    const promptMs = Math.max(0, ...ends.map(({ timings }) => timings.prefill));
    const predictedMs = Math.max(0, ...ends.map(({ timings }) => timings.decode));
    return {
      queued_ms: Math.max(0, ...ends.map(({ timings }) => timings.queued)),
      cache_n: cached,
      prompt_n: computed,
      prompt_ms: promptMs,
      prompt_per_second: perSecond(computed, promptMs),
      predicted_n: predicted,
      predicted_ms: predictedMs,
      predicted_per_second: perSecond(predicted, predictedMs),
    };
  }

  get entropic(): Entropic {
    const ends = [...this.#ends.values()];
    const events = ends.map(({ event }) => event);
    const tokens = this.#completionTokens;
    const entropy = sum(ends.map(({ entropySum }) => entropySum));
    const tau = sum(events.map((event) => event.tau));
    const cost = events.map((event) => event.cost).reduce(addCost, NO_COST);
    const { natsPerSecond, natsPerGigaflop, natsPerGigabyte } = efficiency(tau, cost);
    const reports = events.flatMap(({ temperature }) => temperature ?? []);
    return {
      tau,
      ...(this.#entropyFloor > 0 && { entropy_floor: this.#entropyFloor }),
      mean_entropy: tokens === 0 ? 0 : entropy / tokens,
      cost: {
        flops: cost.flops,
        weight_bytes: cost.weightBytes,
        kv_bytes: cost.kvBytes,
        seconds: cost.seconds,
      },
      dtau_dc: {
        nats_per_second: natsPerSecond,
        nats_per_gflop: natsPerGigaflop,
        nats_per_gbyte: natsPerGigabyte,
      },
      ...summarize(reports),
      ...sumAttention(events.flatMap(({ attention }) => attention ?? [])),
    };
  }

  get #completionTokens(): number {
    return sum([...this.#ends.values()].map(({ completionTokens }) => completionTokens));
  }
}

/** One report on all the choices, each weighed by its tokens. */
function summarize(reports: readonly TemperatureReport[]): Pick<Entropic, "temperature"> {
  const [first] = reports;
  if (first === undefined) return {};
  const steps = sum(reports.map((report) => report.steps));
  const mean = (of: (report: TemperatureReport) => number) =>
    steps === 0 ? 0 : sum(reports.map((report) => report.steps * of(report))) / steps;
  const meanEntropy = mean((report) => report.meanEntropy);
  const square = mean((report) => report.meanEntropy ** 2 + report.entropyDeviation ** 2);
  return {
    temperature: {
      law: first.law,
      mean: mean((report) => report.meanTemperature),
      rail_share: mean((report) => report.railShare),
      mean_entropy: meanEntropy,
      entropy_deviation: Math.sqrt(Math.max(0, square - meanEntropy ** 2)),
      mean_varentropy: mean((report) => report.meanVarentropy),
      mean_gain: mean((report) => report.meanGain),
    },
  };
}

/** One report on all the choices. */
function sumAttention(reports: readonly AttentionReport[]): Pick<Entropic, "attention"> {
  const last = reports.at(-1);
  if (last === undefined) return {};
  const total = (of: (report: AttentionReport) => number) => sum(reports.map(of));
  const share = (part: number, whole: number) => whole > 0 ? part / whole : 1;
  const pruned = total(({ prunedSteps }) => prunedSteps);
  const dropped = total(({ prunedSteps, massDropped }) => prunedSteps * massDropped);
  return {
    attention: {
      policy: last.policy,
      share_read: share(total(({ bytesRead }) => bytesRead), total(({ bytesTotal }) => bytesTotal)),
      share_macs: share(total(({ macs }) => macs), total(({ macsTotal }) => macsTotal)),
      blocks_read: total(({ blocksRead }) => blocksRead),
      blocks_total: total(({ blocksTotal }) => blocksTotal),
      mass_dropped: pruned > 0 ? dropped / pruned : 0,
      pruned_steps: pruned,
      steps: total(({ steps }) => steps),
    },
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function perSecond(count: number, milliseconds: number): number {
  return milliseconds > 0 ? (1000 * count) / milliseconds : 0;
}
