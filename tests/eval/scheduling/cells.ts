/** The cells of the simulated comparison: what comes, how fast, and how much memory there is. */
import { randomNumbers } from "../../support/random.ts";
import { arrivalsOf } from "./arrivals.ts";
import type { Scenario } from "./simulate.ts";
import type { Machine } from "./trace_backend.ts";
import { type Recording, restore, type Trace } from "./traces.ts";

const RECORDING = new URL("../../data/generations.json", import.meta.url);

/**
 * `cpu`: the default model on one core, as fitted to a run; a swapped block is a copy of 360 KiB.
 * `gpu`: one where a step costs most by itself, and prompts next to nothing.
 */
const MACHINES = {
  cpu: { step: 8, decode: 6, prefill: 4.3, swap: 0.12 },
  gpu: { step: 20, decode: 2, prefill: 0.2, swap: 0.05 },
} satisfies Readonly<Record<string, Machine>>;
const SLOTS = 8;

/** Blocks: enough for all slots, and for about half of them, with long answers and with short. */
const MEMORY = { plentiful: 4096, scarce: 80, tight: 40 };
/** Shape of the gamma distribution of the gaps. */
const ARRIVALS = { bursty: 0.5, poisson: 1 };
/** `max_tokens`, one of these for each request; `brief` are those of the runs on the real model. */
const LIMITS = {
  mixed: [32, 64, 128, 256, 384],
  equal: [384],
  brief: [16, 32, 64, 128, 256],
};
const LOADS = [0.7, 0.9, 1.1];
/** Prompts as recorded, without the block that all have in common, and with some long ones. */
const PROMPTS = {
  short: (tokens: number) => tokens,
  cached: (tokens: number) => tokens - 16,
  documents: (tokens: number, random: () => number) => random() < 0.3 ? 300 : tokens,
};
/** Half of the requests hope to be done in so many milliseconds. */
const TARGETS = { none: undefined, targets: 8000 };

export interface Cell {
  readonly memory: keyof typeof MEMORY;
  readonly arrivals: keyof typeof ARRIVALS;
  readonly limits: keyof typeof LIMITS;
  readonly load: number;
  readonly prompts: keyof typeof PROMPTS;
  readonly targets: keyof typeof TARGETS;
  readonly machine: keyof typeof MACHINES;
}

/** Every combination; a cell's name has all its values. */
export const CELLS: readonly Cell[] = [...combinations()];

function* combinations(): Generator<Cell> {
  for (const machine of keys(MACHINES)) {
    for (const prompts of keys(PROMPTS)) {
      for (const targets of keys(TARGETS)) {
        for (const memory of keys(MEMORY)) {
          for (const arrivals of keys(ARRIVALS)) {
            for (const limits of keys(LIMITS)) {
              for (const load of LOADS) {
                yield { memory, arrivals, limits, load, prompts, targets, machine };
              }
            }
          }
        }
      }
    }
  }
}

export function nameOf(cell: Cell): string {
  const { memory, arrivals, limits, load, prompts, targets, machine } = cell;
  return [memory, arrivals, limits, load, prompts, targets, machine].join(" ");
}

export async function recordedTraces(): Promise<Trace[]> {
  const { default: recording } = await import(RECORDING.href, { with: { type: "json" } });
  return (recording as Recording).traces.map(restore);
}

/** The same requests for the same seed. */
export function scenarioOf(
  cell: Cell,
  traces: readonly Trace[],
  count: number,
  seed: number,
): Scenario {
  const random = randomNumbers(seed + 5000);
  const machine = MACHINES[cell.machine];
  const promptOf = PROMPTS[cell.prompts];
  const asked = traces.map((trace) => {
    return { ...trace, promptTokens: promptOf(trace.promptTokens, random) };
  });
  const demand = {
    count,
    load: cell.load,
    shape: ARRIVALS[cell.arrivals],
    maxTokens: LIMITS[cell.limits],
  };
  const latencyTarget = TARGETS[cell.targets];
  const arrivals = arrivalsOf(asked, demand, machine, SLOTS, seed).map((arrival) =>
    latencyTarget === undefined || random() < 0.5
      ? arrival
      : { ...arrival, wishes: { latencyTarget } }
  );
  return { arrivals, machine, kvBlocks: MEMORY[cell.memory], slots: SLOTS };
}

function keys<K extends string>(of: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(of) as K[];
}
