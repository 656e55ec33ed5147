/** How cost grows, of this engine alone: the largest size is the row's value, the others follow. */
import { createPolicy } from "../../../core/engine/scheduling/policies/mod.ts";
import { queueOf } from "../../eval/scheduling/long_queue.ts";
import { OwnBackend } from "../own_backend.ts";
import type { Bench, Row, Sides } from "../row.ts";

/** Measures at a size, in milliseconds. */
type Measure = (size: number) => Promise<number>;

interface Growth {
  readonly name: string;
  readonly about: string;
  readonly unit: string;
  /** Ascending. */
  readonly sizes: readonly number[];
  /** What sizes count. */
  readonly of: string;
  readonly open: (bench: Bench, largest: number) => Promise<Measure>;
}

function growthRow({ name, about, unit, sizes, of, open }: Growth): Row {
  return {
    name,
    about,
    unit,
    better: "less",
    runs: 3,
    open: async (bench): Promise<Sides> => {
      const largest = Math.max(...sizes);
      const measure = await open(bench, largest);
      const side = (size: number) => ({ name: `${of} ${size}`, measure: () => measure(size) });
      return { own: side(largest), others: sizes.filter((size) => size < largest).map(side) };
    },
  };
}

async function openBackend(bench: Bench, batch: number, contextLength: number) {
  const own = await OwnBackend.open({ model: bench.model, threads: 1, batch, contextLength });
  bench.defer(() => own.dispose());
  return own;
}

const STEPS = 24;

const context = growthRow({
  name: "growth-context",
  about: "a decode step by the tokens before it",
  unit: "ms/token",
  sizes: [0, 1024, 2048, 4096, 6144, 8192 - STEPS],
  of: "context",
  open: async (bench, largest) => {
    const own = await openBackend(bench, 1, largest + STEPS);
    return (depth) => own.decode(depth, STEPS);
  },
});

const batch = growthRow({
  name: "growth-batch",
  about: "a decode step by the sequences in it",
  unit: "ms/step",
  sizes: [1, 2, 4, 8, 16, 32],
  of: "batch",
  open: async (bench, largest) => {
    const own = await openBackend(bench, largest, 16 + STEPS);
    return (batch) => own.decode(16, STEPS, { batch });
  },
});

/** Sequences that run while others wait. */
const RUNNING = 64;
const QUEUE_STEPS = 1024;

const queue = growthRow({
  name: "growth-queue",
  about: "the scheduler's part of a step by the requests that wait, entropic policy",
  unit: "ms/step",
  sizes: [10, 100, 1000, 10_000],
  of: "waiting",
  open: () => {
    const schedulers = new Map<number, ReturnType<typeof queueOf>>();
    return Promise.resolve((waiting) => {
      const scheduler = schedulers.get(waiting) ??
        queueOf(waiting, RUNNING, createPolicy("entropic"));
      schedulers.set(waiting, scheduler);
      const start = performance.now();
      for (let step = 1; step <= QUEUE_STEPS; step++) scheduler.schedule(step);
      return Promise.resolve((performance.now() - start) / QUEUE_STEPS);
    });
  },
});

export const GROWTH_ROWS: readonly Row[] = [context, batch, queue];
