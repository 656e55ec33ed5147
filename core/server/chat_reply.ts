/** Pieces of choices to chat completions, streamed or whole. Pure: no clock, no I/O. */
import type { TokenEvent } from "../engine/engine.ts";
import type { ChoiceDelta } from "./choice.ts";
import { chatLogprobs } from "./logprobs.ts";
import { type Reply, replyHead } from "./reply.ts";
import type { ChatChunk, ChatCompletion, ChatLogprobs } from "./schemas/chat.ts";
import { Summary } from "./summary.ts";
import { traceField } from "./trace.ts";

type Pieces = AsyncIterable<ChoiceDelta>;

/** The chunks of a stream: a role for each choice, text, ends, and the usage where it is wanted. */
export async function* chatChunks(reply: Reply, pieces: Pieces): AsyncGenerator<ChatChunk> {
  const summary = new Summary(reply.choicesPerPrompt, reply.entropyFloor);
  const head = { ...replyHead(reply), object: "chat.completion.chunk" as const };
  const noUsage = reply.includeUsage ? { usage: null } : {};
  const chunk = (choice: ChatChunk["choices"][number]) => ({
    ...head,
    choices: [choice],
    ...noUsage,
  });

  for (let index = 0; index < reply.choices; index++) {
    const delta = { role: "assistant" as const, content: "" };
    yield chunk({ index, delta, logprobs: null, finish_reason: null });
  }
  let open = reply.choices;
  for await (const { index, text, tokens, end } of pieces) {
    const logprobs = reply.logprobs && tokens.length > 0
      ? chatLogprobs(reply.tokenizer, tokens)
      : null;
    if (text !== "" || logprobs !== null || (reply.trace && tokens.length > 0)) {
      const trace = traceField(reply, tokens);
      yield chunk({ index, delta: { content: text }, logprobs, finish_reason: null, ...trace });
    }
    if (end === undefined) continue;
    summary.add(index, end);
    open--;
    const last = chunk({ index, delta: {}, logprobs: null, finish_reason: end.reason });
    const { timings, entropic } = summary;
    yield open === 0 && !reply.includeUsage ? { ...last, timings, entropic } : last;
  }
  if (reply.includeUsage) {
    const { usage, timings, entropic } = summary;
    yield { ...head, choices: [], usage, timings, entropic };
  }
}

/** The whole answer, from the same pieces. */
export async function collectChat(reply: Reply, pieces: Pieces): Promise<ChatCompletion> {
  const summary = new Summary(reply.choicesPerPrompt, reply.entropyFloor);
  const texts = Array.from({ length: reply.choices }, () => "");
  const scores = texts.map((): ChatLogprobs["content"] => []);
  const reasons = texts.map((): "stop" | "length" => "stop");
  const drawn = texts.map((): TokenEvent[] => []);
  for await (const { index, text, tokens, end } of pieces) {
    texts[index] += text;
    if (reply.trace) drawn[index]?.push(...tokens);
    if (reply.logprobs) scores[index]?.push(...chatLogprobs(reply.tokenizer, tokens).content);
    if (end === undefined) continue;
    summary.add(index, end);
    reasons[index] = end.reason;
  }
  return {
    ...replyHead(reply),
    object: "chat.completion",
    choices: texts.map((content, index) => ({
      index,
      message: { role: "assistant", content, refusal: null },
      logprobs: reply.logprobs ? { content: scores[index] ?? [] } : null,
      finish_reason: reasons[index] ?? "stop",
      ...traceField(reply, drawn[index] ?? []),
    })),
    usage: summary.usage,
    timings: summary.timings,
    entropic: summary.entropic,
  };
}
