/**
 * What pruned attention changes: a text is teacher-forced under several plans and densely, side by
 * side in one batch over a shared prefix, and each row of logits is held against the dense one.
 */
import {
  type AttentionPlan,
  type AttentionStats,
  type Backend,
  BLOCK_SIZE,
  DENSE,
  type LogitStats,
  type SequenceInput,
} from "../../engine/backend.ts";
import { type Comparison, logProbabilities, Tally } from "./divergence.ts";

/** What a plan for the next token may look at. */
export interface LastStep {
  /** Tokens that the next one attends to, itself included. */
  readonly context: number;
  /** Nats, of the contender's own latest distribution, and the mean of all so far. */
  readonly entropy: number;
  readonly meanEntropy: number;
  /** Share of the attention that its latest step left out, by the scan's estimate. */
  readonly massDropped: number;
}

/** A way to attend; a function of the latest step where the plan follows it. */
export type Contender = AttentionPlan | ((last: LastStep) => AttentionPlan);

/**
 * Compares contenders with dense attention at several places of one text.
 *
 * @param tokens The text; every KV block is overwritten, from the first on.
 * @param lengths Where to compare, ascending: context lengths, the scored positions included. The
 * prefix is computed once, however many there are.
 * @param positions Tokens scored at each length; all lengths are multiples of the block size from them.
 * @returns For each length, one comparison a contender.
 * @throws {RangeError} The text, the context or the KV cache is too short.
 */
export async function compareWithDense(
  backend: Backend,
  tokens: Uint32Array,
  lengths: readonly number[],
  positions: number,
  contenders: readonly Contender[],
): Promise<Comparison[][]> {
  checkRoom(backend, tokens, lengths, positions, contenders.length);
  const results: Comparison[][] = [];
  let done = 0;
  for (const length of lengths) {
    const start = length - positions;
    await prefill(backend, tokens.subarray(0, start), done);
    done = start;
    results.push(await compareFrom(backend, tokens, start, positions, contenders));
  }
  return results;
}

function checkRoom(
  { limits }: Backend,
  tokens: Uint32Array,
  lengths: readonly number[],
  positions: number,
  contenders: number,
): void {
  const most = lengths.at(-1) ?? 0;
  const blocks = most / BLOCK_SIZE + (contenders + 1) * Math.ceil(positions / BLOCK_SIZE);
  const check = (holds: boolean, why: string) => {
    if (!holds) throw new RangeError(`Cannot compare with dense attention: ${why}`);
  };
  for (const [i, length] of lengths.entries()) {
    const start = length - positions;
    check(start > 0 && start % BLOCK_SIZE === 0, `length is ${length} with ${positions} scored`);
    check(i === 0 || length >= (lengths[i - 1] ?? 0), "lengths do not ascend");
  }
  check(most < tokens.length, `the text has ${tokens.length} tokens, needed are ${most + 1}`);
  check(most <= limits.contextLength, `the context has ${limits.contextLength} tokens`);
  check(blocks <= limits.kvBlocks, `there are ${limits.kvBlocks} KV blocks, needed are ${blocks}`);
  check(contenders < limits.maxOutputRows, `${contenders} contenders are too many for one batch`);
}

/** Runs `tokens` from position `from` on, densely, in blocks from the first on. */
export async function prefill(backend: Backend, tokens: Uint32Array, from: number): Promise<void> {
  const blockTable = blockRange(0, Math.ceil(tokens.length / BLOCK_SIZE));
  const step = backend.limits.maxBatchTokens;
  for (let position = from; position < tokens.length; position += step) {
    await backend.forward([{
      tokens: tokens.subarray(position, position + step),
      position,
      blockTable,
      attention: DENSE,
      output: "none",
    }]);
  }
}

async function compareFrom(
  backend: Backend,
  tokens: Uint32Array,
  start: number,
  positions: number,
  contenders: readonly Contender[],
): Promise<Comparison[]> {
  const shared = start / BLOCK_SIZE;
  const own = Math.ceil(positions / BLOCK_SIZE);
  const runs = contenders.map((contender) => new Run(contender));
  const tables = [DENSE, ...contenders].map((_, i) => [
    ...blockRange(0, shared),
    ...blockRange(shared + i * own, own),
  ]);
  for (let position = start; position < start + positions; position++) {
    const plans = [DENSE, ...runs.map((run) => run.plan(position + 1))];
    const batch = plans.map((attention, i): SequenceInput => ({
      tokens: tokens.subarray(position, position + 1),
      position,
      blockTable: tables[i] ?? [],
      attention,
      output: "last",
    }));
    const { rows, attention } = await backend.forward(batch);
    const dense = logProbabilities(await backend.logits(0), rows[0]?.logZ ?? NaN);
    for (const [i, run] of runs.entries()) {
      const row = rows[i + 1];
      const stats = attention[i + 1];
      if (row === undefined || stats === undefined) {
        throw new Error("Cannot compare: a row is lost");
      }
      const pruned = logProbabilities(await backend.logits(i + 1), row.logZ);
      run.tally.add(dense, pruned, tokens[position + 1] ?? 0, stats);
      run.observe(row, stats);
    }
  }
  return runs.map(({ tally }) => tally);
}

/** A contender on its way through the text. */
class Run {
  readonly tally = new Tally();
  readonly #contender: Contender;
  #last: Omit<LastStep, "context"> | undefined;
  #steps = 0;

  constructor(contender: Contender) {
    this.#contender = contender;
  }

  /** Of the next position; a contender that follows the latest step begins densely. */
  plan(context: number): AttentionPlan {
    if (typeof this.#contender !== "function") return this.#contender;
    return this.#last === undefined ? DENSE : this.#contender({ ...this.#last, context });
  }

  observe({ entropy }: LogitStats, { massDropped }: AttentionStats): void {
    const mean = this.#last?.meanEntropy ?? 0;
    const meanEntropy = mean + (entropy - mean) / ++this.#steps;
    this.#last = { entropy, meanEntropy, massDropped };
  }
}

const blockRange = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => first + i);
