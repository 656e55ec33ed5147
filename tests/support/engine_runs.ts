/** Short ways to run requests through an engine in tests. */
import type {
  EndEvent,
  Engine,
  SequenceEvent,
  SequenceRequest,
  SequenceStream,
  TokenEvent,
} from "../../core/engine/engine.ts";

export interface Run {
  readonly events: readonly SequenceEvent[];
  readonly tokens: readonly number[];
  readonly end: EndEvent;
}

/** A request with neutral defaults: greedy, 16 tokens. */
export function request(
  prompt: ArrayLike<number>,
  fields: Partial<SequenceRequest> & { temperature?: number; seed?: bigint } = {},
): SequenceRequest {
  const { temperature = 0, seed = 1n, ...rest } = fields;
  return { prompt, sampling: { temperature, seed }, maxTokens: 16, ...rest };
}

/** Reads a stream to its end. */
export async function read(stream: SequenceStream): Promise<Run> {
  const events: SequenceEvent[] = [];
  for await (const event of stream) events.push(event);
  const end = events.at(-1);
  if (end?.type !== "end") throw new Error("The stream has no end event");
  const tokens = events
    .filter((event): event is TokenEvent => event.type === "token")
    .map(({ token }) => token);
  return { events, tokens, end };
}

export async function run(engine: Engine, asked: SequenceRequest): Promise<Run> {
  return await read(await engine.submit(asked));
}

/** `count` token ids below `vocabularySize`, never 0, the same for the same seed. */
export function promptOf(count: number, seed = 1, vocabularySize = 64): number[] {
  let state = seed >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 1 + (state >>> 8) % (vocabularySize - 1);
  });
}
