/** What a sequence answers does not depend on how the engine came to run it. */
import { assert, assertEquals, assertGreater } from "@std/assert";
import { promptOf, request, run } from "../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../tests/support/scripted_backend.ts";
import type { SequenceRequest } from "./engine.ts";
import type { LocalEngineOptions } from "./engine_options.ts";
import { LocalEngine } from "./local_engine.ts";

function engineOf(backend: ScriptedOptions = {}, options: LocalEngineOptions = {}) {
  const scripted = new ScriptedBackend(backend);
  return { scripted, engine: new LocalEngine(scripted, options) };
}

/** Requests of mixed lengths, greedy and sampled in turn. */
function mixture(count: number): SequenceRequest[] {
  return Array.from({ length: count }, (_, i) =>
    request(promptOf(5 + (13 * i) % 90, i + 1), {
      temperature: 0.5 * (i % 3),
      seed: BigInt(i),
      maxTokens: 10 + (7 * i) % 40,
      ignoreEos: true,
    }));
}

/** The tokens of each request on an engine of its own. */
async function tokensAlone(asked: readonly SequenceRequest[]): Promise<number[][]> {
  const runs = asked.map((one) => run(engineOf({ limits: { kvBlocks: 256 } }).engine, one));
  return (await Promise.all(runs)).map(({ tokens }) => [...tokens]);
}

async function tokensTogether(engine: LocalEngine, asked: readonly SequenceRequest[]) {
  const runs = await Promise.all(asked.map((one) => run(engine, one)));
  return runs.map(({ tokens }) => [...tokens]);
}

Deno.test("LocalEngine gives the same tokens in a batch as alone", async () => {
  const asked = mixture(24);
  const { engine } = engineOf({ limits: { kvBlocks: 256 } });
  assertEquals(await tokensTogether(engine, asked), await tokensAlone(asked));
  assertEquals((await engine.stats()).preemptions, 0);
});

Deno.test("LocalEngine gives the same tokens after a swap to host memory", async () => {
  const asked = mixture(24);
  const { engine, scripted } = engineOf({ limits: { kvBlocks: 12 } });
  assertEquals(await tokensTogether(engine, asked), await tokensAlone(asked));
  assertGreater(scripted.calls.writes, 0);
  assertGreater((await engine.stats()).preemptions, 0);
});

Deno.test("LocalEngine gives the same tokens after computing a sequence again", async () => {
  const asked = mixture(24);
  const { engine, scripted } = engineOf({ limits: { kvBlocks: 12 } }, { hostBytes: 0 });
  assertEquals(await tokensTogether(engine, asked), await tokensAlone(asked));
  assertEquals(scripted.calls.reads, 0);
  assertGreater((await engine.stats()).preemptions, 0);
});

Deno.test("LocalEngine computes again what host memory has no room for", async () => {
  const asked = mixture(24);
  const { engine, scripted } = engineOf({ limits: { kvBlocks: 12 } }, { hostBytes: 512 });
  assertEquals(await tokensTogether(engine, asked), await tokensAlone(asked));
  const { preemptions } = await engine.stats();
  assertGreater(scripted.calls.reads, 0);
  assertGreater(preemptions, scripted.calls.reads);
});

Deno.test("LocalEngine gives the same tokens after a pause with KV resident", async () => {
  // Newest first, in a single slot: each arrival pauses the one before, and no blocks run short.
  const newest = { name: "newest", refreshSteps: 0, key: ({ id }: { id: number }) => -id };
  const { engine, scripted } = engineOf(
    { limits: { kvBlocks: 256 } },
    { policy: newest, maxRunning: 1 },
  );
  const asked = mixture(8);
  const order: number[] = [];
  const runs: Promise<number[]>[] = [];
  for (const [i, one] of asked.entries()) {
    const stream = await engine.submit(one);
    const events = stream[Symbol.asyncIterator]();
    const first = await events.next();
    runs.push((async () => {
      const tokens = first.value.type === "token" ? [first.value.token] : [];
      for (let next = await events.next(); !next.done; next = await events.next()) {
        if (next.value.type === "token") tokens.push(next.value.token);
      }
      order.push(i);
      return tokens;
    })());
  }
  assertEquals(await Promise.all(runs), await tokensAlone(asked));
  assertEquals(order[0], asked.length - 1);
  assertEquals(scripted.calls.reads, 0);
  assertEquals((await engine.stats()).preemptions, 0);
});

Deno.test("LocalEngine gives the same tokens on a prefix hit as on a miss", async () => {
  const { engine } = engineOf();
  for (const length of [15, 16, 17, 32, 33, 47, 48]) {
    for (const temperature of [0, 0.8]) {
      const asked = request(promptOf(length, length), { temperature, seed: 3n, ignoreEos: true });
      const miss = await run(engine, asked), hit = await run(engine, asked);
      assertEquals(hit.tokens, miss.tokens);
      assertEquals(hit.end.usage.cachedTokens, 16 * Math.floor((length - 1) / 16));
    }
  }
});

Deno.test("LocalEngine reuses generated tokens as a prefix, as in a conversation", async () => {
  const { engine } = engineOf();
  const prompt = promptOf(20);
  const first = await run(engine, request(prompt, { maxTokens: 30, ignoreEos: true }));
  const longer = request([...prompt, ...first.tokens, 5, 6, 7], { ignoreEos: true });
  const second = await run(engine, longer);
  assertEquals(second.end.usage.cachedTokens, 48);
  assertEquals(second.tokens, (await run(engineOf().engine, longer)).tokens);
});

Deno.test("LocalEngine gives the same tokens for a prompt in chunks as for a whole one", async () => {
  for (const stepTokens of [1, 3, 16, 40]) {
    const { engine } = engineOf({}, { stepTokens });
    const asked = mixture(6);
    assertEquals(await tokensTogether(engine, asked), await tokensAlone(asked));
  }
});

Deno.test("LocalEngine computes a prompt once for requests that come together", async () => {
  let computed = 0;
  const { engine } = engineOf({
    onForward: (_, batch) => batch.forEach(({ tokens }) => void (computed += tokens.length)),
  });
  const asked = Array.from(
    { length: 8 },
    (_, i) => request(promptOf(100), { temperature: 1, seed: BigInt(i), maxTokens: 1 }),
  );
  const runs = await Promise.all(asked.map((one) => run(engine, one)));
  assertEquals(runs.map(({ end }) => end.usage.cachedTokens), [0, 96, 96, 96, 96, 96, 96, 96]);
  assertEquals(computed, 100 + 7 * 4);
  assert(new Set(runs.map(({ tokens }) => tokens[0])).size > 1, "the choices differ");
});

Deno.test("LocalEngine survives a hash that puts all blocks in one place", async () => {
  const asked = mixture(16).flatMap((one) => [one, one]);
  const { engine } = engineOf({ limits: { kvBlocks: 20 } }, { hashBlock: () => 7 });
  assertEquals(await tokensTogether(engine, asked), await tokensAlone(asked));
});

Deno.test("LocalEngine draws the same tokens whatever the backend reveals of its rows", async () => {
  const asked = [
    request(promptOf(9), { temperature: 1, seed: 5n, ignoreEos: true, maxTokens: 200 }),
    { ...request(promptOf(9), { maxTokens: 200 }), sampling: { topP: 0.9, seed: 6n } },
    { ...request(promptOf(9), { maxTokens: 200 }), sampling: { minP: 0.1, topK: 20, seed: 7n } },
    {
      ...request(promptOf(9), { maxTokens: 200, minTokens: 20 }),
      sampling: { temperature: 0.7, repetitionPenalty: 1.2, frequencyPenalty: 0.5, seed: 8n },
    },
  ];
  const tokens = await Promise.all([1, 4, 16, 64].map(async (topK) => {
    const { engine, scripted } = engineOf({ limits: { topK, kvBlocks: 256 } });
    return { tokens: await tokensTogether(engine, asked), full: scripted.calls.logits };
  }));
  for (const one of tokens) assertEquals(one.tokens, tokens[0]!.tokens);
  assertEquals(tokens.at(-1)!.full, 0);
});
