/** The next token of a sequence: the temperature that its control sets, then the sampler. */
import { temperedRow } from "../../entropic/tempered_row.ts";
import type { TokenLogits } from "../backend.ts";
import type { LogitRow } from "./logit_row.ts";
import { uniform } from "./random.ts";
import { sampleFromStats } from "./sampler.ts";
import type { Sequence } from "../sequence.ts";

export interface TokenChoice {
  readonly token: number;
  /** That it was drawn with. */
  readonly temperature: number;
}

/**
 * Takes what the step drew, where it was asked to; else decides on the statistics alone, then with the
 * logits of what the adjuster touches, and draws from the whole row where those leave it open.
 *
 * @throws {RequestError} No token is left to choose from.
 */
export async function chooseToken(
  sequence: Sequence,
  row: LogitRow,
  vocabularySize: number,
): Promise<TokenChoice> {
  const { adjuster, request, generatedTokens } = sequence;
  const { drawn } = row.stats;
  if (drawn !== undefined) {
    return { token: drawn.token, temperature: request.sampling.temperature ?? 1 };
  }
  const temperature = await nextTemperature(sequence, row);
  const sampling = { ...request.sampling, temperature };
  const u = uniform(sampling.seed, generatedTokens);
  const decide = (touched?: TokenLogits) =>
    sampleFromStats(sampling, row.stats, adjuster, vocabularySize, u, touched);
  const decided = decide();
  if (decided !== undefined) return { token: decided, temperature };
  const touched = await row.logitsOf(adjuster.touched());
  const token = (adjuster.neutral ? undefined : decide(touched)) ??
    await row.draw(sampling, adjuster.adjustSome(touched), u);
  return { token, temperature };
}

/** A law that knows its temperature asks the backend; only one that searches takes the whole row. */
async function nextTemperature(sequence: Sequence, row: LogitRow): Promise<number> {
  const { temperature: loop, adjuster, request } = sequence;
  if (loop === undefined) return request.sampling.temperature ?? 1;
  const { entropy } = row.stats;
  if (adjuster.neutral && loop.known !== undefined) {
    const found = await row.tempered(loop.known);
    return loop.next(entropy, () => found);
  }
  const logits = await row.logits();
  return loop.next(entropy, temperedRow(adjuster.neutral ? logits : adjuster.adjustAll(logits)));
}
