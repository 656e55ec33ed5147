/**
 * A Worker that hosts an engine over the scripted backend. A prompt that starts with token 62 makes
 * it die of an uncaught error.
 */
import { hostEngine } from "../../core/engine/remote/engine_host.ts";
import { channelOf } from "../../core/engine/remote/engine_protocol.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { ScriptedBackend } from "./scripted_backend.ts";

const DEADLY = 62;

const backend = new ScriptedBackend({
  onForward: async (_, batch) => {
    if (!batch.some(({ tokens, position }) => position === 0 && tokens[0] === DEADLY)) return;
    setTimeout(() => {
      throw new Error("the worker is gone");
    });
    await new Promise(() => {});
  },
});
const scope = self as unknown as Parameters<typeof channelOf>[0];
await hostEngine(channelOf(scope), () => Promise.resolve(new LocalEngine(backend)));
