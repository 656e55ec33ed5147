/** The engine on WebGPU: which backend it takes, and what becomes of requests when a device goes. */
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { BackendError } from "../../core/errors.ts";
import { createBackend, openEngine } from "../../core/host/open_engine.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { createWebGpuBackend } from "../../gpu/backend.ts";
import { createWasmBackend } from "../../wasm/backend.ts";
import { adapterOf, capturedGpu, withGpu } from "../support/captured_gpu.ts";
import { request, run } from "../support/engine_runs.ts";
import { ADAPTER } from "../support/gpu.ts";
import { writeGguf } from "../support/gguf_writer.ts";
import { tinyModel, tinyModelSpec } from "../support/tiny_model.ts";

const ignore = ADAPTER === undefined;
const MODEL = tinyModel({ type: "F16" });
const sources = () => [new MemorySource("tiny.gguf", MODEL)];
const PROMPT = Array.from({ length: 40 }, (_, i) => (7 * i + i * i) % 200);

Deno.test({
  name: "LocalEngine on WebGPU fails the request in flight with its device, and serves the next",
  ignore,
}, async () => {
  const { gpu, devices } = capturedGpu();
  const open = async () => {
    const { files } = await openModel(sources());
    return await createWebGpuBackend({ files, gpu, kvBlocks: 64, warmUp: false });
  };
  const engine = new LocalEngine(await open(), { recover: open });
  // Two steps are in flight by then, of tokens that the second takes from the first unread.
  const asked = request(PROMPT, { maxTokens: 200, ignoreEos: true, temperature: 0.8 });
  const stream = await engine.submit(asked);
  let tokens = 0;
  const error = await assertRejects(async () => {
    for await (const event of stream) {
      if (event.type === "token" && ++tokens === 3) devices[0]?.destroy();
    }
  }, BackendError);
  assertStringIncludes(error.message, "Cannot compute: the WebGPU device ");
  assert(tokens >= 3 && tokens < 200);

  const next = await run(engine, request(PROMPT, { maxTokens: 4, ignoreEos: true }));
  assertEquals(next.tokens.length, 4);
  assertEquals(devices.length, 2);
  const { kvBlocksFree, kvBlocksTotal } = await engine.stats();
  assertEquals(kvBlocksFree, kvBlocksTotal);
  await engine.dispose();
});

Deno.test({ name: "createBackend on WebGPU multiplies as it is told to", ignore }, async () => {
  const { files } = await openModel(sources());
  const settings = { backend: "webgpu", kvBlocks: 16, arithmetic: "int8" } as const;
  const backend = await createBackend(files, settings);
  assertMatch(backend.describe().variant, /^int8 on ./);
  await backend.dispose();
});

Deno.test({ name: "openEngine on WebGPU draws the greedy tokens of WASM", ignore }, async () => {
  const { files } = await openModel(sources());
  const engines = [
    await openEngine({ sources: sources() }, { backend: "webgpu", kvBlocks: 64 }),
    new LocalEngine(await createWasmBackend({ files, kvType: "f32", kvBlocks: 64 })),
  ];
  const runs = [];
  for (const engine of engines) {
    runs.push(await run(engine, request(PROMPT, { maxTokens: 24, ignoreEos: true })));
    await engine.dispose();
  }
  const [gpu, wasm] = runs;
  assertEquals(engines.map(({ info }) => info.backend.kind), ["webgpu", "wasm"]);
  assertEquals(gpu!.tokens, wasm!.tokens);
});

/** Opens a backend by default where `navigator.gpu` is another. */
async function createAuto(
  gpu: unknown,
  { mayAsk = true, model = MODEL, context }: {
    readonly mayAsk?: boolean;
    readonly model?: Uint8Array<ArrayBuffer>;
    readonly context?: number;
  } = {},
): Promise<{ readonly kind: string; readonly lines: string[] }> {
  const lines: string[] = [];
  const { files } = await openModel([new MemorySource("tiny.gguf", model)]);
  const settings = { kvBlocks: 64, ...(context !== undefined && { context }) };
  const log = (line: string) => void lines.push(line);
  const asks = () => Promise.resolve(mayAsk);
  const backend = await withGpu(gpu, () => createBackend(files, settings, log, asks));
  await backend.dispose();
  return { kind: backend.describe().kind, lines };
}

Deno.test("createBackend takes WASM by default where WebGPU is of no use, and says so", async () => {
  const refuse = () => Promise.reject(new Error("out of devices"));
  const cases: [gpu: unknown, said: string][] = [
    [undefined, "Cannot use WebGPU: this runtime has none"],
    [{ requestAdapter: () => Promise.resolve(null) }, "WebGPU has no adapter"],
    [adapterOf("llvmpipe", refuse), "WebGPU has only a software adapter (llvmpipe)"],
    [adapterOf("Some GPU", refuse), "Cannot open a WebGPU device: out of devices"],
  ];
  for (const [gpu, said] of cases) {
    assertEquals(await createAuto(gpu), { kind: "wasm", lines: [`${said}; using WASM`] });
  }
});

/** A model whose up projection has another type than its gate projection. */
function modelOfTwoTypes() {
  const { metadata, tensors } = tinyModelSpec({ type: "F16" });
  const up = (name: string) => name === "blk.1.ffn_up.weight";
  const other = tinyModelSpec({ type: "F32" }).tensors.filter(({ name }) => up(name));
  return writeGguf({ metadata, tensors: [...tensors.filter(({ name }) => !up(name)), ...other] });
}

Deno.test({
  name: "createBackend takes WASM by default where only WASM runs the model, and says why",
  ignore,
}, async () => {
  const own = navigator.gpu;
  const open = async () => await (await own.requestAdapter())!.requestDevice();
  const broken = async () =>
    Object.assign(await open(), {
      createComputePipelineAsync: () => Promise.reject(new DOMException("a driver's own bug")),
    });
  const cases: [Parameters<typeof createAuto>, said: string][] = [
    [
      [adapterOf("Some GPU", open), { model: modelOfTwoTypes() }],
      "Cannot load blk.1.ffn_up.weight on WebGPU: its type is F32, allowed is F16",
    ],
    [[adapterOf("Some GPU", open), { context: 2 ** 22 }], "Cannot create WebGPU backend: "],
    [[adapterOf("Some GPU", broken)], "Cannot compile kernel "],
  ];
  for (const [given, said] of cases) {
    const { kind, lines: [line = "", ...more] } = await createAuto(...given);
    assertEquals([kind, more], ["wasm", []]);
    assertStringIncludes(line, said);
    assertMatch(line, /; using WASM$/);
  }
});

Deno.test("createBackend asks for no adapter by default where there can be no GPU", async () => {
  const gpu = { requestAdapter: () => Promise.reject(new Error("asked")) };
  assertEquals(await createAuto(gpu, { mayAsk: false }), { kind: "wasm", lines: [] });
});

Deno.test("openEngine says why WebGPU cannot be had where it was asked for", async () => {
  const none = { requestAdapter: () => Promise.resolve(null) } as unknown as GPU;
  const { files } = await openModel(sources());
  const error = await assertRejects(() => createWebGpuBackend({ files, gpu: none }), BackendError);
  assertStringIncludes(error.message, "Cannot use WebGPU: no adapter was found");
});
