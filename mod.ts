/**
 * entropic-time: LLM inference for Deno, Bun and the edge that spends compute where uncertainty
 * falls. This module is the public API.
 *
 * @example
 * ```ts
 * import { Hono } from "hono";
 * import { entropic, loadModel } from "entropic-time";
 *
 * const model = await loadModel();
 * const app = new Hono();
 * app.route("/", entropic(model));
 * ```
 *
 * @module
 */
export { generate } from "./core/generate.ts";
export type { GeneratedToken, GenerateOptions, GenerationSummary } from "./core/generate.ts";
export { entropic } from "./core/server/app.ts";
export type { EntropicOptions } from "./core/server/options.ts";
export { loadModel, type LoadOptions } from "./core/host/load_model.ts";
export {
  type KeepOptions,
  type OpfsOptions,
  OpfsStore,
  type StoredModel,
} from "./core/host/store/opfs_store.ts";
export type { ReportProgress, TransferProgress } from "./core/host/store/transfer_meter.ts";
export type { Arithmetic } from "./core/engine/arithmetic.ts";
export { type BackendName, BACKENDS, type EngineSettings } from "./core/host/open_engine.ts";
export { POLICIES, type PolicyName } from "./core/engine/scheduling/policies/mod.ts";
export type { AttentionSettings } from "./core/engine/attention/attention_settings.ts";
export type { AttentionControl, AttentionPolicy, MassByLength } from "./core/entropic/pruning.ts";
export type { LanguageModel } from "./core/language_model.ts";
export type * from "./core/engine/engine.ts";
export type * from "./core/engine/backend.ts";
export type { ModelConfig } from "./core/model/config.ts";
export type { ByteSource } from "./core/model/source.ts";
export { BlobSource, MemorySource } from "./core/model/memory_source.ts";
export type { EncodeOptions, Tokenizer } from "./core/model/tokenizer.ts";
export type { ChatMessage, ChatTemplate, PromptSegment } from "./core/model/chat_template.ts";
export { BackendError, ModelError, OverloadedError, RequestError } from "./core/errors.ts";
