/** Checks of what a caller hands to a backend, before anything is computed: one for all backends. */
import { BLOCK_SIZE, DENSE } from "./backend.ts";
import type {
  AttentionPlan,
  BackendLimits,
  Draw,
  FollowingInput,
  SequenceInput,
} from "./backend.ts";

function check(ok: boolean, message: () => string): void {
  if (!ok) throw new RangeError(message());
}

function isIndex(value: number | undefined, end: number): boolean {
  return value !== undefined && Number.isInteger(value) && value >= 0 && value < end;
}

/** Output rows of a sequence's part of a step. */
export function outputRows({ tokens, output }: SequenceInput): number {
  return output === "all" ? tokens.length : output === "last" ? 1 : 0;
}

/** How the step draws from each output row of a sequence's part; `undefined` where it does not. */
export function rowDraws(input: SequenceInput): readonly (Draw | undefined)[] {
  const rows = outputRows(input);
  return Array.from({ length: rows }, (_, row) => row + 1 === rows ? input.draw : undefined);
}

/**
 * @param prunes Whether pruned attention plans can run.
 * @throws {RangeError} The batch is not within `limits`, or a part of it names what is not there.
 */
export function validateBatch(
  batch: readonly SequenceInput[],
  limits: BackendLimits,
  vocabulary: number,
  prunes: boolean,
): void {
  let tokens = 0;
  let rows = 0;
  for (const [index, sequence] of batch.entries()) {
    validateSequence(sequence, `sequence ${index}`, limits, vocabulary);
    validatePlan(sequence.attention, `sequence ${index}`, prunes);
    tokens += sequence.tokens.length;
    rows += outputRows(sequence);
  }
  check(
    tokens <= limits.maxBatchTokens,
    () => `Cannot run batch: it has ${tokens} new tokens, at most ${limits.maxBatchTokens} fit`,
  );
  check(
    rows <= limits.maxOutputRows,
    () => `Cannot run batch: it has ${rows} output rows, at most ${limits.maxOutputRows} fit`,
  );
}

/**
 * A step that follows another, as one whose new tokens are known: each is 0 until it is.
 *
 * @param before How the step before draws from each of its output rows.
 * @throws {RangeError} A part of the batch names a row that is not there, or not drawn from.
 */
export function followingBatch(
  batch: readonly FollowingInput[],
  before: readonly (Draw | undefined)[],
): SequenceInput[] {
  return batch.map(({ row, ...rest }, index) => {
    const follows = () => `Cannot run sequence ${index}: it follows row ${row}, the step before`;
    check(isIndex(row, before.length), () => `${follows()} has ${before.length}`);
    check(before[row] !== undefined, () => `${follows()} draws nothing from it`);
    return { ...rest, tokens: [0], attention: DENSE, output: "last" };
  });
}

function validateSequence(
  { tokens, position, blockTable }: SequenceInput,
  name: string,
  { contextLength, kvBlocks }: BackendLimits,
  vocabulary: number,
): void {
  const end = position + tokens.length;
  check(tokens.length > 0, () => `Cannot run ${name}: it has no new tokens`);
  check(
    isIndex(position, contextLength) && end <= contextLength,
    () => `Cannot run ${name}: positions ${position} to ${end} are not within ${contextLength}`,
  );
  const blocks = Math.ceil(end / BLOCK_SIZE);
  check(
    blockTable.length >= blocks,
    () => `Cannot run ${name}: its block table has ${blockTable.length} of ${blocks} blocks`,
  );
  validateTokens(tokens, vocabulary, name);
  for (let i = 0; i < blocks; i++) {
    validateBlock(blockTable[i], kvBlocks, name);
  }
}

/** @throws {RangeError} A token id is outside the vocabulary. */
export function validateTokens(tokens: ArrayLike<number>, vocabulary: number, name: string): void {
  for (let i = 0; i < tokens.length; i++) {
    const id = tokens[i];
    check(
      isIndex(id, vocabulary),
      () => `Cannot run ${name}: token id is ${id}, the vocabulary has ${vocabulary}`,
    );
  }
}

function validatePlan(plan: AttentionPlan, name: string, prunes: boolean): void {
  if (plan.kind === "dense") return;
  check(
    prunes,
    () =>
      `Cannot run ${name}: attention plan is ${plan.kind}, without a key sketch dense is allowed`,
  );
  const share = plan.kind === "mass" ? plan.mass : plan.threshold;
  check(
    share >= 0 && share <= 1,
    () => `Cannot run ${name}: ${plan.kind} of its attention plan is ${share}, allowed is 0 to 1`,
  );
  check(
    Number.isSafeInteger(plan.minBlocks) && plan.minBlocks >= 0,
    () => `Cannot run ${name}: least blocks are ${plan.minBlocks}, allowed are 0 or more`,
  );
}

/** @throws {RangeError} There is no such block. */
export function validateBlock(block: number | undefined, kvBlocks: number, name: string): void {
  check(
    isIndex(block, kvBlocks),
    () => `Cannot run ${name}: KV block is ${block}, there are ${kvBlocks}`,
  );
}
