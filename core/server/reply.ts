/** What all chunks of one answer have in common, and which optional parts the client asked for. */
import type { LanguageModel } from "../language_model.ts";
import type { Tokenizer } from "../model/tokenizer.ts";

export interface Reply {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  /** Equal for answers that the same model on the same kind of backend gave. */
  readonly fingerprint: string;
  readonly tokenizer: Tokenizer;
  /** What lies below it adds nothing to tau; nats. */
  readonly entropyFloor: number;
  /** Choices of the whole answer: prompts times `choicesPerPrompt`. */
  readonly choices: number;
  readonly choicesPerPrompt: number;
  readonly logprobs: boolean;
  readonly includeUsage: boolean;
  /** Whether each choice lists its tokens' entropies. */
  readonly trace: boolean;
}

type Wishes = Pick<Reply, "choices" | "choicesPerPrompt" | "logprobs" | "includeUsage" | "trace">;

/** @param prefix Of the answer's id, `chatcmpl-` or `cmpl-`. */
export function newReply(model: LanguageModel, prefix: string, wishes: Wishes): Reply {
  const { kind, variant } = model.engine.info.backend;
  return {
    id: prefix + crypto.randomUUID().replaceAll("-", ""),
    created: Math.floor(Date.now() / 1000),
    model: model.id,
    fingerprint: fingerprint(model.id, kind, variant),
    tokenizer: model.tokenizer,
    entropyFloor: model.engine.info.entropyFloor,
    ...wishes,
  };
}

/** The fields that open every object of the answer. */
export function replyHead(reply: Reply) {
  return {
    id: reply.id,
    created: reply.created,
    model: reply.model,
    system_fingerprint: reply.fingerprint,
  };
}

/** FNV-1a, 32 bits: the backend's variant may change the last digits, its thread count does not. */
export function fingerprint(...parts: readonly string[]): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(parts.join("\0"))) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return `fp_${hash.toString(16).padStart(8, "0")}`;
}
