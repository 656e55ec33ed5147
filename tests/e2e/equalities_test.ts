/**
 * On the WASM core itself: however a sequence is scheduled, its tokens and the very bits of its
 * entropies are those of the sequence run alone. (`tests/fuzz` shows the same for the scheduler.)
 */
import { assert, assertEquals } from "@std/assert";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import type { LocalEngineOptions } from "../../core/engine/engine_options.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { createWasmBackend, type WasmBackendOptions } from "../../wasm/backend.ts";
import { promptOf, read, request, type Run, run } from "../support/engine_runs.ts";
import { tinyModel } from "../support/tiny_model.ts";

const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel({ type: "Q4_1" }))]);

type Settings = LocalEngineOptions & Omit<WasmBackendOptions, "files">;

async function engine(settings: Settings = {}): Promise<LocalEngine> {
  return new LocalEngine(await createWasmBackend({ files, ...settings }), settings);
}

/** Greedy and sampled requests of many lengths, some with a common prefix. */
const REQUESTS = Array.from({ length: 10 }, (_, i) => {
  const prompt = i % 3 === 0
    ? [...promptOf(40, 7), ...promptOf(1 + 5 * i, i + 1)]
    : promptOf(1 + 17 * i, i + 1);
  return request(prompt, {
    maxTokens: 5 + 4 * i,
    ignoreEos: true,
    temperature: i % 2,
    seed: BigInt(i),
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

/** Each request on a fresh engine. */
const alone = await (async () => {
  const outcomes: unknown[] = [];
  for (const asked of REQUESTS) {
    const one = await engine();
    outcomes.push(outcome(await run(one, asked)));
    await one.dispose();
  }
  return outcomes;
})();

async function together(one: LocalEngine): Promise<unknown[]> {
  const streams = await Promise.all(REQUESTS.map((asked) => one.submit(asked)));
  return (await Promise.all(streams.map(read))).map(outcome);
}

Deno.test("WASM engine: a batch gives what each sequence gives alone", async () => {
  const one = await engine();
  assertEquals(await together(one), alone);
  await one.dispose();
});

Deno.test("WASM engine: prompts in chunks of any size give what whole prompts give", async () => {
  for (const prefillChunk of [1, 7, 16, 33]) {
    const one = await engine({ prefillChunk, stepTokens: 40 });
    assertEquals(await together(one), alone, `chunks of ${prefillChunk}`);
    await one.dispose();
  }
});

Deno.test("WASM engine: sequences swapped to host memory give what undisturbed ones give", async () => {
  const one = await engine({ kvBlocks: 16 });
  assertEquals(await together(one), alone);
  assert((await one.stats()).preemptions > 0, "nothing was preempted");
  await one.dispose();
});

Deno.test("WASM engine: sequences computed again give what undisturbed ones give", async () => {
  const one = await engine({ kvBlocks: 16, hostBytes: 0 });
  assertEquals(await together(one), alone);
  assert((await one.stats()).preemptions > 0, "nothing was preempted");
  await one.dispose();
});

Deno.test("WASM engine: a prefix found in the cache gives what computing it gives", async () => {
  const one = await engine();
  await together(one);
  for (const [i, asked] of REQUESTS.entries()) {
    const again = await run(one, asked);
    assertEquals(outcome(again), alone[i]);
    const reusable = 16 * Math.floor((asked.prompt.length - 1) / 16);
    assertEquals(again.end.usage.cachedTokens, reusable);
  }
  await one.dispose();
});

Deno.test("WASM engine: a run leaves every block free", async () => {
  const one = await engine({ kvBlocks: 16 });
  await together(one);
  const { kvBlocksFree, kvBlocksTotal } = await one.stats();
  assertEquals(kvBlocksFree, kvBlocksTotal);
  await one.dispose();
});
