/**
 * Pruned attention on the WASM core under the engine: prompts stay dense bit for bit, and however a
 * pruned sequence is scheduled, its tokens and the bits of its entropies are those of it alone.
 */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AttentionSettings } from "../../core/engine/attention/attention_settings.ts";
import type { LocalEngineOptions } from "../../core/engine/engine_options.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import type { AttentionControl } from "../../core/entropic/pruning.ts";
import { keySketch } from "../../core/host/calibrate/key_sketch.ts";
import { DENSE } from "../../core/engine/backend.ts";
import { openEngine } from "../../core/host/open_engine.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { createWasmBackend, type WasmBackendOptions } from "../../wasm/backend.ts";
import { promptOf, read, request, type Run, run } from "../support/engine_runs.ts";
import { temporaryDirectory } from "../support/temporary_directory.ts";
import { tinyModel } from "../support/tiny_model.ts";

const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel({ type: "Q4_1" }))]);

type Settings = LocalEngineOptions & Omit<WasmBackendOptions, "files">;

/** A sketch from the keys of some tokens. */
const sketch = await (async () => {
  const backend = await createWasmBackend({ files });
  await backend.pruning?.gather(true);
  const tokens = promptOf(200, 99);
  const blockTable = Array.from({ length: 13 }, (_, i) => i);
  await backend.forward([{ tokens, position: 0, blockTable, attention: DENSE, output: "none" }]);
  const moments = await backend.pruning?.gather(false);
  await backend.dispose();
  assert(moments !== undefined);
  return keySketch(moments, files.config, 16);
})();

async function engine(settings: Settings = {}): Promise<LocalEngine> {
  const backend = await createWasmBackend({ files, ...settings });
  await backend.pruning?.useSketch(sketch);
  const attention = { denseBelow: 70, shadowEvery: 0, ...settings.attention };
  return new LocalEngine(backend, { ...settings, attention });
}

const MASS: AttentionControl = { policy: "mass", mass: 0.6, minBlocks: 4 };
const CONTROLS: readonly AttentionControl[] = [
  MASS,
  { policy: "off" },
  { ...MASS, gain: 0.1 },
  { policy: "paper", minBlocks: 4, threshold: 0.05 },
];

/** Greedy and sampled requests of many lengths, some with a common prefix. */
const REQUESTS = Array.from({ length: 8 }, (_, i) => {
  const prompt = i % 3 === 0
    ? [...promptOf(80, 7), ...promptOf(1 + 5 * i, i + 1)]
    : promptOf(30 + 17 * i, i + 1);
  return request(prompt, {
    maxTokens: 20 + 6 * i,
    ignoreEos: true,
    temperature: i % 2,
    seed: BigInt(i),
    attention: CONTROLS[i % CONTROLS.length]!,
  });
});

/** What must not differ: tokens, log-probabilities and entropies, to the last bit. */
function outcome({ events }: Run): unknown {
  return events.map((event) =>
    event.type === "token"
      ? [event.token, event.logprob, event.entropy, event.varentropy]
      : event.type
  );
}

async function outcomes(one: LocalEngine, asked = REQUESTS): Promise<unknown[]> {
  const streams = await Promise.all(asked.map((request) => one.submit(request)));
  const runs = await Promise.all(streams.map(read));
  await one.dispose();
  return runs.map(outcome);
}

const alone = await (async () => {
  const all: unknown[] = [];
  for (const asked of REQUESTS) all.push(...await outcomes(await engine(), [asked]));
  return all;
})();

Deno.test("WASM engine: a sketch changes nothing where attention is off", async () => {
  const dense = REQUESTS.map((asked) => ({ ...asked, attention: { policy: "off" } as const }));
  const without = new LocalEngine(await createWasmBackend({ files }));
  assertEquals(await outcomes(await engine(), dense), await outcomes(without, dense));
});

Deno.test("WASM engine: pruned answers differ from dense ones, and read less", async () => {
  const one = await engine();
  const asked = request(promptOf(150), { maxTokens: 60, ignoreEos: true });
  const dense = await run(one, asked), pruned = await run(one, { ...asked, attention: MASS });
  assertEquals(pruned.end.usage.cachedTokens, 144);
  const entropies = (of: Run) =>
    of.events.map((event) => event.type === "token" ? event.entropy : 0);
  assertEquals(entropies(pruned)[0], entropies(dense)[0]);
  assert(entropies(pruned)[1] !== entropies(dense)[1]);
  const { blocksRead, blocksTotal, prunedSteps, massDropped } = pruned.end.attention!;
  assertEquals(prunedSteps, 59);
  assertLess(blocksRead, blocksTotal);
  assert(massDropped > 0 && massDropped < 0.4);
  await one.dispose();
});

Deno.test("openEngine calibrates once where it is to prune, and finds that again", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "tiny.gguf");
  await writeFile(path, tinyModel({ headSize: 32, contextLength: 256 }));
  const open = async (settings: AttentionSettings) => {
    const lines: string[] = [];
    const log = (line: string) => void lines.push(line);
    const attention = { denseBelow: 70, minBlocks: 4, ...settings };
    const one = await openEngine({ paths: [path] }, { attention }, { log });
    const asked = request(promptOf(100), { ignoreEos: true, attention: { policy: "mass" } });
    const outcome = await run(one, asked).then(
      ({ end }) => end.attention!.prunedSteps,
      (error: Error) => error.name,
    );
    const { policy } = one.info.attention;
    await one.dispose();
    return { policy, outcome, calibrated: lines.some((line) => line.includes("sketched")) };
  };
  assertEquals(await open({}), { policy: "off", outcome: "RequestError", calibrated: false });
  const pruned = { outcome: 15, calibrated: false };
  assertEquals(await open({ policy: "mass" }), { ...pruned, policy: "mass", calibrated: true });
  assertEquals(await open({ policy: "mass" }), { ...pruned, policy: "mass" });
  assertEquals(await open({}), { ...pruned, policy: "off" });
});

for (
  const [name, settings] of Object.entries<Settings>({
    "in a batch": {},
    "in small chunks": { prefillChunk: 7, stepTokens: 12 },
    "swapped to host memory": { kvBlocks: 24 },
    "computed again": { kvBlocks: 24, hostBytes: 0 },
    "with a shadow of every step": { attention: { shadowEvery: 1 } },
  })
) {
  Deno.test(`WASM engine: pruned sequences ${name} give what each gives alone`, async () => {
    const one = await engine(settings);
    const streams = await Promise.all(REQUESTS.map((asked) => one.submit(asked)));
    const runs = await Promise.all(streams.map(read));
    assertEquals(runs.map(outcome), alone);
    const { attention, preemptions } = await one.stats();
    if (settings.kvBlocks !== undefined) assertGreater(preemptions, 0);
    if (settings.attention !== undefined) {
      assertGreater(attention.shadows, 50);
      assertGreater(attention.divergence, 0);
    }
    await one.dispose();
  });
}
