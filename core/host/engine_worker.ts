/** A Worker with an engine in it. Its first message says which; then it speaks `engine_protocol`. */
import { hostEngine } from "../engine/remote/engine_host.ts";
import {
  channelOf,
  type ClientMessage,
  type HostMessage,
} from "../engine/remote/engine_protocol.ts";
import { type EngineSettings, openEngine } from "./open_engine.ts";

/** The first message to the Worker. */
export interface WorkerStart {
  readonly paths: readonly string[];
  readonly settings: EngineSettings;
}

const scope = globalThis as unknown as Parameters<typeof channelOf>[0];

globalThis.addEventListener("message", (event) => {
  const { paths, settings } = (event as MessageEvent<WorkerStart>).data;
  void hostEngine(
    channelOf<HostMessage, ClientMessage>(scope),
    (log) => openEngine({ paths }, settings, { log }),
  );
}, { once: true });
