/** What HTTP clients and operators see of a device that goes in mid-answer. */
import { assertEquals, assertMatch } from "@std/assert";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { createBackend } from "../../core/host/open_engine.ts";
import { entropic } from "../../core/server/app.ts";
import { complete, COMPLETIONS, type Json, post } from "../http/requests.ts";
import { tinyFiles } from "../support/backend_lifecycle.ts";
import { ByteTokenizer, chatml } from "../support/byte_tokenizer.ts";
import { adapterOf, withGpu } from "../support/captured_gpu.ts";
import { ADAPTER } from "../support/gpu.ts";

/** An engine on `auto` whose only GPU works once. */
async function openOnPassingGpu(log: (line: string) => void) {
  const files = await tinyFiles({ type: "F16" });
  const own = navigator.gpu;
  const devices: GPUDevice[] = [];
  const passing = adapterOf("Passing GPU", async () => {
    const adapter = await own.requestAdapter();
    devices.push(await adapter!.requestDevice());
    return devices[0];
  });
  const none = { requestAdapter: () => Promise.resolve(null) };
  const open = () =>
    withGpu(
      devices.length === 0 ? passing : none,
      () => createBackend(files, { kvBlocks: 64 }, log, () => Promise.resolve(true)),
    );
  const engine = new LocalEngine(await open(), { recover: open, log });
  return { engine, lose: () => devices[0]?.destroy() };
}

Deno.test({
  name: "a server on auto fails the answer whose device goes, and gives the next ones from WASM",
  ignore: ADAPTER === undefined,
}, async () => {
  const lines: string[] = [];
  const { engine, lose } = await openOnPassingGpu((line) => void lines.push(line));
  const tokenizer = new ByteTokenizer();
  const model = { id: "tiny", created: 0, engine, tokenizer, template: chatml };
  const app = entropic({ model });
  const json = async (path: string): Promise<Json> => await (await app.request(path)).json();
  const backendOf = async () => (await json("/health")).backend;
  assertEquals((await backendOf()).variant, "f32 on Passing GPU");

  const long = { prompt: "Hi", max_tokens: 200, temperature: 0, ignore_eos: true };
  const streamed = await post(app, COMPLETIONS, { ...long, stream: true });
  const whole = post(app, COMPLETIONS, long);
  let text = "";
  for await (const chunk of streamed.body!.pipeThrough(new TextDecoderStream())) {
    if (!text.includes("data: ") && chunk.includes("data: ")) lose();
    text += chunk;
  }
  const error = /^Cannot compute: the WebGPU device (was lost|failed)/;
  const events = text.split("\n\n").filter((event) => event.startsWith("data: "));
  assertEquals(events.at(-1), "data: [DONE]");
  const { error: told } = JSON.parse(events.at(-2)!.slice("data: ".length));
  assertMatch(told.message, error);
  assertEquals([told.type, told.code], ["server_error", "backend_failed"]);
  const refused = await whole;
  assertEquals(refused.status, 500);
  assertMatch((await refused.json()).error.message, error);

  const next = await complete(app, { max_tokens: 5, ignore_eos: true });
  assertEquals(next.usage.completion_tokens, 5);
  const { kind, rebuilds } = await backendOf();
  assertEquals([kind, rebuilds], ["wasm", 1]);
  const metrics = await (await app.request("/metrics")).text();
  assertMatch(metrics, /^entropic_model_info\{.*backend="wasm".*\} 1$/m);
  assertMatch(metrics, /^entropic_backend_rebuilds_total 1$/m);
  assertMatch(metrics, /^entropic_sequences_finished_total\{reason="error"\} 2$/m);
  assertEquals(lines[0], "WebGPU has no adapter; using WASM");
  assertMatch(lines[1]!, /^Cannot compute: the WebGPU device .*; going on with wasm \(.+\)$/);
  await engine.dispose();
});
