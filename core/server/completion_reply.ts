/** Pieces of choices to text completions, streamed or whole. Pure: no clock, no I/O. */
import type { ChoiceDelta } from "./choice.ts";
import { CompletionScores, type ScoredToken } from "./logprobs.ts";
import { type Reply, replyHead } from "./reply.ts";
import type { Completion, CompletionLogprobs } from "./schemas/completions.ts";
import { Summary } from "./summary.ts";
import { traceField } from "./trace.ts";

type Pieces = AsyncIterable<ChoiceDelta>;
type CompletionChoice = Completion["choices"][number];

/** The prompt that a choice repeats before its own text. */
export interface Echo {
  readonly text: string;
  readonly tokens: ArrayLike<number>;
}

/** The chunks of a stream. @param echoes One entry a choice, or none where nothing is repeated. */
export async function* completionChunks(
  reply: Reply,
  echoes: readonly Echo[],
  pieces: Pieces,
): AsyncGenerator<Completion> {
  const summary = new Summary(reply.choicesPerPrompt, reply.entropyFloor);
  const head = { ...replyHead(reply), object: "text_completion" as const };
  const noUsage = reply.includeUsage ? { usage: null } : {};
  let open = reply.choices;
  for await (const { choice, delta } of completionParts(reply, echoes, pieces)) {
    const chunk = { ...head, choices: [choice], ...noUsage };
    if (delta.end === undefined) {
      yield chunk;
      continue;
    }
    summary.add(delta.index, delta.end);
    open--;
    const { timings, entropic } = summary;
    yield open === 0 && !reply.includeUsage ? { ...chunk, timings, entropic } : chunk;
  }
  if (reply.includeUsage) {
    const { usage, timings, entropic } = summary;
    yield { ...head, choices: [], usage, timings, entropic };
  }
}

/** The whole answer, from the same pieces. */
export async function collectCompletion(
  reply: Reply,
  echoes: readonly Echo[],
  pieces: Pieces,
): Promise<Completion> {
  const summary = new Summary(reply.choicesPerPrompt, reply.entropyFloor);
  const choices = Array.from({ length: reply.choices }, (_, index): CompletionChoice => ({
    index,
    text: "",
    logprobs: null,
    finish_reason: null,
  }));
  for await (const { choice, delta } of completionParts(reply, echoes, pieces)) {
    const whole = choices[choice.index];
    if (whole === undefined) continue;
    whole.text += choice.text;
    whole.logprobs = appendLogprobs(whole.logprobs, choice.logprobs);
    whole.finish_reason = choice.finish_reason;
    if (choice.entropic_trace !== undefined) {
      whole.entropic_trace = [...whole.entropic_trace ?? [], ...choice.entropic_trace];
    }
    if (delta.end !== undefined) summary.add(choice.index, delta.end);
  }
  const { usage, timings, entropic } = summary;
  return { ...replyHead(reply), object: "text_completion", choices, usage, timings, entropic };
}

/** Each piece with the choice object that shows it; the first of a choice carries its echo. */
async function* completionParts(
  reply: Reply,
  echoes: readonly Echo[],
  pieces: Pieces,
): AsyncGenerator<{ readonly choice: CompletionChoice; readonly delta: ChoiceDelta }> {
  const scores = Array.from(
    { length: reply.choices },
    () => new CompletionScores(reply.tokenizer),
  );
  const echoed = new Set<number>();
  for await (const delta of pieces) {
    const { index, end } = delta;
    const echo = echoed.has(index) ? undefined : echoes[index];
    echoed.add(index);
    const tokens = [...echo ? promptScores(echo, delta) : [], ...delta.tokens];
    const choice = {
      index,
      text: (echo?.text ?? "") + delta.text,
      logprobs: reply.logprobs ? scores[index]?.take(tokens) ?? null : null,
      finish_reason: end?.reason ?? null,
      ...traceField(reply, delta.tokens),
    };
    yield { choice, delta };
  }
}

function promptScores(echo: Echo, { prompt }: ChoiceDelta): readonly ScoredToken[] {
  const [first] = Array.from(echo.tokens);
  if (prompt === undefined || first === undefined) return [];
  return [{ token: first, logprob: null, top: [] }, ...prompt.logprobs];
}

function appendLogprobs(
  before: CompletionLogprobs | null,
  after: CompletionLogprobs | null,
): CompletionLogprobs | null {
  if (before === null || after === null) return before ?? after;
  before.tokens.push(...after.tokens);
  before.token_logprobs.push(...after.token_logprobs);
  before.top_logprobs?.push(...after.top_logprobs ?? []);
  before.text_offset.push(...after.text_offset);
  return before;
}
