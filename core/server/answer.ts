/** The one path from planned requests to an HTTP answer, streamed or whole. */
import type { SequenceRequest } from "../engine/engine.ts";
import type { LanguageModel } from "../language_model.ts";
import { TextStream } from "../model/text_stream.ts";
import { ApiError } from "./api_error.ts";
import { Choice, type ChoiceDelta } from "./choice.ts";
import type { Exchange } from "./exchange.ts";
import { Generation } from "./generation.ts";
import type { Server } from "./server.ts";
import { eventStream } from "./sse.ts";

export interface Answer {
  readonly model: LanguageModel;
  readonly requests: readonly SequenceRequest[];
  readonly stop: readonly string[];
  readonly stream: boolean;
  /** The chunks of a stream. */
  chunks(pieces: AsyncIterable<ChoiceDelta>): AsyncGenerator<unknown, void, void>;
  /** The whole answer. */
  collect(pieces: AsyncIterable<ChoiceDelta>): Promise<unknown>;
}

/**
 * Generates and answers. What can be refused is refused before a stream's status line.
 *
 * @throws {RequestError} The engine refuses a request.
 * @throws {OverloadedError} The engine's queue is full.
 */
export async function respond(
  server: Server,
  exchange: Exchange,
  answer: Answer,
): Promise<Response> {
  const { model, requests } = answer;
  const generation = await Generation.start(model.engine, requests, exchange.signal);
  const choices = requests.map((_, index) =>
    new Choice(index, model.tokenizer, new TextStream(model.tokenizer, answer.stop))
  );
  const observe = server.metrics.tokenObserver(exchange.arrival);
  const pieces = counted(generation.follow(choices, observe), exchange);
  if (!answer.stream) return await collect(answer, pieces, exchange);
  exchange.stream();
  return eventStream(answer.chunks(pieces), {
    keepAliveSeconds: server.settings.keepAliveSeconds,
    signal: exchange.signal,
    abort: () => generation.abort(),
    onClose(reason, error) {
      exchange.error = error;
      exchange.disconnected = reason === "disconnect";
      exchange.end();
    },
  });
}

async function collect(
  answer: Answer,
  pieces: AsyncIterable<ChoiceDelta>,
  exchange: Exchange,
): Promise<Response> {
  try {
    return Response.json(await answer.collect(pieces));
  } catch (error) {
    if (!exchange.signal.aborted) throw error;
    exchange.disconnected = true;
    // nginx's code for a client that left; nobody reads it but the log.
    throw new ApiError(499, "Cannot answer: the client left", { code: "client_closed" }, {
      cause: error,
    });
  }
}

/** Notes usage for the access log as the choices end. */
async function* counted(
  pieces: AsyncIterable<ChoiceDelta>,
  exchange: Exchange,
): AsyncGenerator<ChoiceDelta> {
  for await (const piece of pieces) {
    const { end } = piece;
    if (end !== undefined) {
      exchange.promptTokens = (exchange.promptTokens ?? 0) + end.event.usage.promptTokens;
      exchange.completionTokens = (exchange.completionTokens ?? 0) + end.completionTokens;
    }
    yield piece;
  }
}
