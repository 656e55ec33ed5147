/** A workload under every policy: repeats with paired seeds, policies taking turns within each. */
import { type Backend, BLOCK_SIZE } from "../../../core/engine/backend.ts";
import { compareWithDense } from "../../../core/host/calibrate/compare.ts";
import { type Divergence, divergenceOf } from "../../../core/host/calibrate/divergence.ts";
import type { AttentionControl } from "../../../core/entropic/pruning.ts";
import { contender } from "../divergence.ts";
import { type Figures, figuresOf } from "./figures.ts";
import {
  attentionOf,
  type LayerSettings,
  type PolicyName,
  requestUnder,
  schedulingOf,
} from "./policies.ts";
import { type CompareWithDense, type Evidence, qualityOf } from "./quality.ts";
import { type StoredPrefix, storePrefix, withPrefix } from "./stored_prefix.ts";
import { type Row, rowOf, type Synergy, synergyOf } from "./table.ts";
import { type Job, runTrial, type Trial } from "./trial.ts";
import {
  type Arrival,
  arrivalsOf,
  type Prompts,
  type Size,
  type WorkloadName,
} from "./workloads.ts";

export interface Experiment {
  readonly workload: WorkloadName;
  readonly size: Size;
  readonly prompts: Prompts;
  /** The baseline among them. */
  readonly policies: readonly PolicyName[];
  readonly repeats: number;
  /** H* where it is not to be the baseline's own mean entropy. */
  readonly target: number | undefined;
  readonly settings: Omit<LayerSettings, "target">;
  /** Positions of the document on which the attention layer's quality is measured. */
  readonly scored: number;
  readonly log: (line: string) => void;
}

export interface Finding {
  readonly rows: readonly Row[];
  readonly synergy: readonly Synergy[];
  /** H* of the sampling layer, in nats. */
  readonly target: number;
}

export async function runExperiment(backend: Backend, experiment: Experiment): Promise<Finding> {
  const { workload, size, prompts, policies, repeats, settings, log } = experiment;
  const prefix = await storePrefix(backend, prompts.document);
  const { target, duration } = await rehearse(backend, prefix, experiment);
  const layers: LayerSettings = { ...settings, target: experiment.target ?? target };
  log(`${workload}: H* ${layers.target.toFixed(3)} nats, ${repeats} repeats`);
  const evidence = new Map(policies.map((policy) => [policy, new Collected()]));
  for (let repeat = 1; repeat <= repeats; repeat++) {
    const arrivals = arrivalsOf(prompts, size, repeat);
    for (const policy of rotated(policies, repeat)) {
      const jobs = jobsOf(arrivals, duration, policy, layers);
      const scheduling = schedulingOf(policy, layers);
      const trial = await runTrial(backend, prefix, jobs, scheduling, size.slots);
      evidence.get(policy)?.add(jobs, trial);
      log(`${workload} ${repeat} ${policy.padEnd(20)} ${line(figuresOf(trial))}`);
    }
  }
  const figures = new Map(
    [...evidence].map(([policy, { trials }]) => [policy, trials.map(figuresOf)] as const),
  );
  const baseline = evidence.get("baseline") ?? new Collected();
  const compare = comparison(backend, prefix, experiment.scored, layers);
  const rows: Row[] = [];
  for (const [policy, found] of evidence) {
    const quality = await qualityOf(
      policy,
      found,
      baseline,
      backend,
      prefix,
      compare(policy),
    );
    const runs = figures.get(policy) ?? [];
    rows.push(rowOf(policy, workload, runs, figures.get("baseline") ?? [], quality));
  }
  return { rows, synergy: synergyOf(workload, figures), target: layers.target };
}

/** Trials of one policy, and what each was asked. */
class Collected implements Evidence {
  readonly trials: Trial[] = [];
  readonly jobs: (readonly Job[])[] = [];

  add(jobs: readonly Job[], trial: Trial): void {
    this.jobs.push(jobs);
    this.trials.push(trial);
  }
}

/**
 * A baseline run that does not count. It warms the machine, and measures what the others need: how
 * long the requests take when they come at once, and the mean entropy at the temperature drawn with.
 */
async function rehearse(backend: Backend, prefix: StoredPrefix, experiment: Experiment) {
  const { prompts, size, settings } = experiment;
  const { temperature } = settings;
  // A law that can only stay where it is: it reports H at this temperature.
  const hold = { law: "stabilized", target: 0, min: temperature, max: temperature } as const;
  const jobs = arrivalsOf(prompts, size, 0).map(({ asked: { seed, ...asked } }) => ({
    at: 0,
    request: { ...asked, sampling: { temperature, seed, temperatureControl: hold } },
  }));
  const policy = schedulingOf("baseline", { ...settings, target: 0 });
  const { answers, duration } = await runTrial(backend, prefix, jobs, policy, size.slots);
  let entropy = 0, steps = 0;
  for (const { end: { temperature: report } } of answers) {
    entropy += (report?.meanEntropy ?? 0) * (report?.steps ?? 0);
    steps += report?.steps ?? 0;
  }
  return { target: entropy / steps, duration };
}

/** @param duration Milliseconds that the requests take when they come at once. */
function jobsOf(
  arrivals: readonly Arrival[],
  duration: number,
  policy: PolicyName,
  layers: LayerSettings,
): Job[] {
  return arrivals.map(({ at, asked }) => ({
    at: at * duration,
    request: requestUnder(policy, asked, layers),
  }));
}

/** Measures each way to prune against dense attention on the document: once, when first asked for. */
function comparison(
  backend: Backend,
  prefix: StoredPrefix,
  scored: number,
  layers: LayerSettings,
): (policy: PolicyName) => CompareWithDense | undefined {
  const { tokens } = prefix;
  // The last token has no next one to be scored by, and lengths are whole blocks.
  const length = tokens.length - BLOCK_SIZE;
  const measured = new Map<string, Promise<Divergence>>();
  const measure = async (control: AttentionControl) => {
    const contenders = [contender(control, backend.config.vocabularySize)];
    const lent = withPrefix(backend, prefix);
    const [comparisons] = await compareWithDense(lent, tokens, [length], scored, contenders);
    return divergenceOf(comparisons ?? []);
  };
  return (policy) => {
    const control = attentionOf(policy, layers);
    if (control === undefined || length <= scored) return undefined;
    return () => {
      const found = measured.get(control.policy) ?? measure(control);
      measured.set(control.policy, found);
      return found;
    };
  };
}

/** Another policy begins each repeat, so that no one gains by its place. */
function rotated<T>(items: readonly T[], by: number): T[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function line(figures: Figures): string {
  const { latency, throughput, nats_per_second, attention_bytes, tokens, ttft } = figures;
  return `latency ${latency.toFixed(2)} s, ttft ${ttft.toFixed(2)} s, ` +
    `${throughput.toFixed(1)} tokens/s, ${nats_per_second.toFixed(1)} nats/s, ` +
    `attention ${attention_bytes.toFixed(2)}, ${tokens} tokens`;
}
