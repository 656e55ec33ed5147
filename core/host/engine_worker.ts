/** A Worker with an engine in it. Its first message says which; then it speaks `engine_protocol`. */
import { hostEngine } from "../engine/remote/engine_host.ts";
import {
  channelOf,
  type ClientMessage,
  type HostMessage,
} from "../engine/remote/engine_protocol.ts";
import { BlobSource } from "../model/memory_source.ts";
import { type EngineSettings, type ModelLocation, openEngine } from "./open_engine.ts";

/** The first message to the Worker. */
export interface WorkerStart {
  readonly model: PortableModel;
  readonly settings: EngineSettings;
}

/** Where a model lies, as structured clone can say it. */
export type PortableModel =
  | { readonly paths: readonly string[] }
  | { readonly blobs: readonly { readonly name: string; readonly blob: Blob }[] };

const locate = (model: PortableModel): ModelLocation =>
  "paths" in model
    ? model
    : { sources: model.blobs.map(({ name, blob }) => new BlobSource(name, blob)) };

const scope = globalThis as unknown as Parameters<typeof channelOf>[0];

globalThis.addEventListener("message", (event) => {
  const { model, settings } = (event as MessageEvent<WorkerStart>).data;
  void hostEngine(
    channelOf<HostMessage, ClientMessage>(scope),
    (log) => openEngine(locate(model), settings, { log }),
  );
}, { once: true });
