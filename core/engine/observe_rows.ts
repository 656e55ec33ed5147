/** What a sequence sees of its rows of logits in a step. */
import type { Backend, LogitStats } from "./backend.ts";
import { LogitRow } from "./sampling/logit_row.ts";
import type { StepEntry } from "./scheduling/scheduled_step.ts";

/**
 * Checks the rows and takes prompt log-probabilities from them.
 *
 * @param rows Of the whole step.
 * @returns The last of the entry's rows, if it has any.
 * @throws {BackendError} A row is no distribution.
 */
export async function observeRows(
  entry: StepEntry,
  rows: readonly LogitStats[],
  backend: Backend,
): Promise<LogitRow | undefined> {
  const { sequence, firstRow } = entry;
  let last: LogitRow | undefined;
  for (let i = 0; i < entry.rows; i++) {
    last = new LogitRow(rows[firstRow + i] as LogitStats, backend, firstRow + i);
    last.check();
    if (sequence.promptRowsLeft === 0) continue;
    const next = sequence.promptLogprobs.length + 1;
    if (sequence.computed + i + 1 !== next) continue;
    const token = sequence.tokens[next] as number;
    const top = last.top(sequence.request.topLogprobs ?? 0);
    sequence.promptLogprobs.push({ token, logprob: await last.logprob(token), top });
  }
  return last;
}
