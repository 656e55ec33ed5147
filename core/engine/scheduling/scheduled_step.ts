/** What one step of the engine does: which blocks move, and which tokens go through the model. */
import type { Draw, FollowingInput, SequenceInput } from "../backend.ts";
import { plainDraw } from "../sampling/plain_draw.ts";
import type { HostCopy, Sequence } from "../sequence.ts";

/** KV that leaves the backend for host memory. The blocks may be written again after it is read. */
export interface SwapOut {
  readonly sequence: Sequence;
  readonly blocks: readonly number[];
  readonly copy: HostCopy;
}

/** KV that comes back. The first `skip` blocks of the copy were found in the prefix cache. */
export interface SwapIn {
  readonly sequence: Sequence;
  readonly blocks: readonly number[];
  readonly skip: number;
  readonly copy: HostCopy;
}

/** One sequence's tokens in a step. */
export interface StepEntry {
  readonly sequence: Sequence;
  /** Its place in the batch, and in `ForwardResult.attention`. */
  readonly index: number;
  /** New tokens, >= 1. */
  readonly count: number;
  /** Rows of logits, and the first one's index in `ForwardResult.rows`. */
  readonly rows: number;
  readonly firstRow: number;
  /** How the step draws the next token from the last row; `undefined` where it does not. */
  readonly draw: Draw | undefined;
}

export class ScheduledStep {
  readonly entries: StepEntry[] = [];
  readonly batch: SequenceInput[] = [];
  /** In place of `batch`, in a step that follows one whose tokens are still to be drawn. */
  readonly following: FollowingInput[] = [];
  readonly swapOuts: SwapOut[] = [];
  readonly swapIns: SwapIn[] = [];
  /** Milliseconds on the engine's clock. */
  readonly now: number;
  /** New tokens and output rows that still fit. */
  tokensLeft: number;
  rowsLeft: number;
  #rows = 0;

  constructor(now: number, tokens: number, rows: number) {
    this.now = now;
    this.tokensLeft = tokens;
    this.rowsLeft = rows;
  }

  /** Nothing to do at all. */
  get empty(): boolean {
    return this.entries.length === 0 && this.swapOuts.length === 0 && this.swapIns.length === 0;
  }

  /** Takes back that a sequence's copy is to be read; answers that copy. */
  cancelSwapIn(sequence: Sequence): HostCopy | undefined {
    const index = this.swapIns.findIndex((swapIn) => swapIn.sequence === sequence);
    return index < 0 ? undefined : this.swapIns.splice(index, 1)[0]?.copy;
  }

  /** Leaves out sequences that turn out to have no use for the step. */
  keep(wanted: (sequence: Sequence) => boolean): void {
    this.entries.splice(0, Infinity, ...this.entries.filter(({ sequence }) => wanted(sequence)));
  }

  /** Gives a sequence of the step before the token that is drawn from its last row there. */
  follow({ sequence, rows, firstRow }: StepEntry): void {
    const index = this.entries.length;
    const draw = plainDraw(sequence, sequence.generatedTokens + 1);
    this.entries.push({ sequence, index, count: 1, rows: 1, firstRow: index, draw });
    this.following.push({
      row: firstRow + rows - 1,
      position: sequence.length,
      blockTable: sequence.blocks,
      draw,
    });
  }

  /** Gives the step up; answers every sequence whose KV it touched. */
  withdraw(): Set<Sequence> {
    const moves = [...this.entries.splice(0), ...this.swapIns.splice(0)];
    return new Set(moves.map(({ sequence }) => sequence));
  }

  /**
   * Gives a sequence up to `count` of its next tokens: as many as attend alike, for generated tokens
   * that are computed again must attend as they did.
   */
  add(sequence: Sequence, count: number, output: SequenceInput["output"]): void {
    const { attention, computed } = sequence;
    const alike = Math.min(count, attention.planEnd(computed) - computed);
    if (alike < count) return this.#add(sequence, alike, output === "last" ? "none" : output);
    this.#add(sequence, count, output);
  }

  #add(sequence: Sequence, count: number, output: SequenceInput["output"]): void {
    const { attention, blocks, computed, generatedTokens, uncomputedTokens } = sequence;
    const rows = output === "none" ? 0 : output === "last" ? 1 : count;
    const completes = count === uncomputedTokens;
    const draw = completes ? plainDraw(sequence, generatedTokens) : undefined;
    this.entries.push({
      ...{ sequence, count, rows, draw },
      index: this.batch.length,
      firstRow: this.#rows,
    });
    this.batch.push({
      tokens: sequence.slice(computed, count),
      position: computed,
      blockTable: blocks,
      attention: attention.planAt(computed),
      output,
      draw,
    });
    this.#rows += rows;
    this.rowsLeft -= rows;
    this.tokensLeft -= count;
  }
}
