import { assert, assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { promptOf, read, request, run } from "../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../tests/support/scripted_backend.ts";
import { OverloadedError, RequestError } from "../errors.ts";
import { uncertainty } from "../entropic/entropy.ts";
import type { SequenceRequest } from "./engine.ts";
import type { LocalEngineOptions } from "./engine_options.ts";
import { LocalEngine } from "./local_engine.ts";

function engineOf(backend: ScriptedOptions = {}, options: LocalEngineOptions = {}): LocalEngine {
  return new LocalEngine(new ScriptedBackend(backend), options);
}

/** Always ranks token `(last + 1) % vocabulary` first, by far. */
const COUNTING: ScriptedOptions = {
  endTokens: [10],
  shape: (logits, history) => {
    logits.fill(0);
    logits[((history.at(-1) as number) + 1) % logits.length] = 20;
  },
};

async function refusal(engine: LocalEngine, asked: SequenceRequest): Promise<RequestError> {
  return await assertRejects(() => engine.submit(asked), RequestError);
}

Deno.test("LocalEngine ends at the model's end token without emitting it", async () => {
  const { tokens, end } = await run(engineOf(COUNTING), request([7]));
  assertEquals(tokens, [8, 9]);
  assertEquals([end.reason, end.stopToken], ["stop", 10]);
  assertEquals(end.usage, { promptTokens: 1, cachedTokens: 0, completionTokens: 2 });
});

Deno.test("LocalEngine goes past end tokens with ignoreEos, and stops at stopTokens", async () => {
  const engine = engineOf(COUNTING);
  const ignoring = await run(engine, request([7], { ignoreEos: true, maxTokens: 5 }));
  assertEquals(ignoring.tokens, [8, 9, 10, 11, 12]);
  const stopping = await run(engine, request([7], { ignoreEos: true, stopTokens: [12] }));
  assertEquals([stopping.tokens, stopping.end.stopToken], [[8, 9, 10, 11], 12]);
});

Deno.test("LocalEngine bans end and stop tokens until minTokens", async () => {
  // With 10 banned, the others tie; 0 comes first, and counts up to 10 again.
  const { tokens, end } = await run(engineOf(COUNTING), request([9], { minTokens: 3 }));
  assertEquals(tokens, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assertEquals([end.reason, end.stopToken], ["stop", 10]);
  const late = await run(engineOf(COUNTING), request([7], { minTokens: 2 }));
  assertEquals([late.tokens, late.end.stopToken], [[8, 9], 10]);
});

Deno.test("LocalEngine generates exactly maxTokens, also 0, 1 and 2", async () => {
  const engine = engineOf();
  for (const maxTokens of [0, 1, 2, 100]) {
    const { tokens, end } = await run(
      engine,
      request(promptOf(20), { maxTokens, ignoreEos: true }),
    );
    assertEquals([tokens.length, end.reason], [maxTokens, "length"]);
    assertEquals(end.usage.completionTokens, maxTokens);
  }
});

Deno.test("LocalEngine reports exact log-probabilities, entropies and entropic time", async () => {
  const rows: Float32Array[] = [];
  const engine = engineOf({
    limits: { topK: 2 },
    shape: (logits) => void rows.push(logits.slice()),
  });
  const { events, end } = await run(
    engine,
    request(promptOf(9), { temperature: 2, topLogprobs: 2, ignoreEos: true }),
  );
  let tau = 0, before: number | undefined, outside = 0;
  for (const [i, event] of events.entries()) {
    if (event.type !== "token") continue;
    const row = rows[i]!;
    const { logZ, entropy, varentropy } = uncertainty(row);
    assertAlmostEquals(event.logprob, row[event.token]! - logZ, 1e-9);
    assertAlmostEquals(event.entropy, entropy, 1e-9);
    assertAlmostEquals(event.varentropy, varentropy, 1e-9);
    assertAlmostEquals(event.endProbability, Math.exp((row[0] as number) - logZ), 1e-9);
    assertEquals(
      event.top.map(({ token }) => row[token]),
      [...row].sort((a, b) => b - a).slice(0, 2),
    );
    if (!event.top.some(({ token }) => token === event.token)) outside++;
    tau += Math.max(0, (before ?? entropy) - entropy);
    before = entropy;
  }
  assert(outside > 0, "some token was drawn from outside the listed ones");
  assertAlmostEquals(end.tau, tau, 1e-9);
  assertAlmostEquals((await engine.stats()).tau, tau, 1e-9);
});

Deno.test("LocalEngine reports each prompt token's log-probability, in chunks and on a hit", async () => {
  const prompt = promptOf(70);
  const asked = request(prompt, { maxTokens: 2, promptLogprobs: true, topLogprobs: 1 });
  const rows: Float32Array[] = [];
  const engine = engineOf({
    limits: { maxOutputRows: 8, topK: 4 },
    shape: (logits) => void rows.push(logits.slice()),
  });
  await run(engine, request(prompt, { maxTokens: 0 }));
  rows.length = 0;
  const { events, end } = await run(engine, asked);
  const [first] = events;
  assert(first?.type === "prompt");
  assertEquals(first.logprobs.map(({ token }) => token), prompt.slice(1));
  for (const [i, { token, logprob, top }] of first.logprobs.entries()) {
    assertAlmostEquals(logprob, rows[i]![token]! - uncertainty(rows[i]!).logZ, 1e-9);
    assertEquals(top.length, 1);
  }
  assertEquals(end.usage.cachedTokens, 0);
  assertEquals(events.map(({ type }) => type), ["prompt", "token", "token", "end"]);
});

Deno.test("LocalEngine keeps prompt log-probabilities through preemption in mid-prefill", async () => {
  const newest = { name: "newest", refreshSteps: 0, key: ({ id }: { id: number }) => -id };
  const asked = request(promptOf(70), { promptLogprobs: true, ignoreEos: true });
  const undisturbed = await run(engineOf(), asked);
  for (const hostBytes of [0, 1e6]) {
    let other: Promise<unknown> | undefined;
    const engine = engineOf({
      limits: { kvBlocks: 7, maxOutputRows: 8, maxBatchTokens: 8 },
      onForward: (call) => {
        if (call === 4) other = run(engine, request(promptOf(60, 2)));
      },
    }, { hostBytes, policy: newest });
    const { events, end } = await run(engine, asked);
    assertEquals(events, [...undisturbed.events.slice(0, -1), end]);
    assertEquals((await engine.stats()).preemptions, 1);
    await other;
  }
});

Deno.test("LocalEngine measures phases on the clock that it is given", async () => {
  let now = 0;
  const engine = engineOf({ onForward: () => void (now += 10) }, { now: () => now });
  const { end } = await run(engine, request(promptOf(100), { maxTokens: 3, ignoreEos: true }));
  assertEquals(end.timings, { queued: 0, prefill: 20, decode: 20 });
  assertAlmostEquals((await engine.stats()).forwardSeconds, 0.04);
});

Deno.test("LocalEngine refuses what can never fit, with both counts", async () => {
  const engine = engineOf({ limits: { contextLength: 100, kvBlocks: 64 } });
  const error = await refusal(engine, request(promptOf(95), { maxTokens: 6 }));
  assertEquals([error.code, error.status], ["context_length_exceeded", 400]);
  assert(error.message.includes("100") && error.message.includes("101"), error.message);
  for (const [length, maxTokens] of [[100, 0], [99, 1], [95, 5]] as const) {
    const { tokens } = await run(engine, request(promptOf(length), { maxTokens, ignoreEos: true }));
    assertEquals(tokens.length, maxTokens);
  }
});

Deno.test("LocalEngine never promises more than the KV cache holds", async () => {
  const engine = engineOf({ limits: { contextLength: 4096, kvBlocks: 4 } });
  assertEquals(engine.info.maxSequenceTokens, 64);
  const error = await refusal(engine, request(promptOf(60), { maxTokens: 5 }));
  assertEquals(error.code, "context_length_exceeded");
  const { tokens } = await run(engine, request(promptOf(60), { maxTokens: 4, ignoreEos: true }));
  assertEquals(tokens.length, 4);
});

Deno.test("LocalEngine refuses bad values by name, and serves the next request", async () => {
  const engine = engineOf();
  const bad: [string, SequenceRequest][] = [
    ["prompt", request([])],
    ["prompt", request([64])],
    ["prompt", request([-1])],
    ["prompt", request([1.5])],
    ["max_tokens", request([1], { maxTokens: -1 })],
    ["max_tokens", request([1], { maxTokens: NaN })],
    ["temperature", request([1], { temperature: -1 })],
    ["temperature", request([1], { temperature: NaN })],
    ["temperature", request([1], { temperature: Infinity })],
    ["top_logprobs", request([1], { topLogprobs: 9 })],
    ["seed", request([1], { seed: -1n })],
    ["seed", request([1], { seed: 1n << 64n })],
    ["seed", request([1], { seed: 5 as unknown as bigint })],
    ["top_p", { ...request([1]), sampling: { seed: 0n, topP: 0 } }],
    ["min_p", { ...request([1]), sampling: { seed: 0n, minP: 1.1 } }],
    ["top_k", { ...request([1]), sampling: { seed: 0n, topK: -1 } }],
    ["repetition_penalty", { ...request([1]), sampling: { seed: 0n, repetitionPenalty: 0 } }],
    ["presence_penalty", { ...request([1]), sampling: { seed: 0n, presencePenalty: 2.1 } }],
    ["logit_bias", { ...request([1]), sampling: { seed: 0n, logitBias: [[64, 1]] } }],
    ["logit_bias", { ...request([1]), sampling: { seed: 0n, logitBias: [[1, NaN]] } }],
    ["logit_bias", { ...request([1]), sampling: { seed: 0n, logitBias: { 1: 2 } as never } }],
    ["stop_token_ids", request([1], { stopTokens: [64] })],
  ];
  for (const [param, asked] of bad) {
    assertEquals((await refusal(engine, asked)).param, param);
  }
  assertEquals((await run(engine, request([1], { ignoreEos: true }))).tokens.length, 16);
});

Deno.test("LocalEngine bounds its queue", async () => {
  const engine = engineOf({}, { maxWaiting: 2, maxRunning: 1 });
  const streams = [await engine.submit(request([1])), await engine.submit(request([2]))];
  await assertRejects(() => engine.submit(request([3])), OverloadedError);
  await Promise.all(streams.map(read));
  await run(engine, request([3]));
});

Deno.test("LocalEngine fails a sequence alone whose tokens are all banned", async () => {
  const engine = engineOf();
  const banned = Array.from({ length: 64 }, (_, id) => [id, -Infinity] as const);
  const [hopeless, other] = await Promise.allSettled([
    run(engine, { ...request([1]), sampling: { seed: 0n, logitBias: banned } }),
    run(engine, request([1], { ignoreEos: true })),
  ]);
  assert(hopeless.status === "rejected" && hopeless.reason instanceof RequestError);
  assert(other.status === "fulfilled");
  const stats = await engine.stats();
  assertEquals([stats.kvBlocksFree, stats.finished.error], [stats.kvBlocksTotal, 1]);
});

Deno.test("LocalEngine pauses a sequence that nobody reads, and no other", async () => {
  const { engine, forwards } = (() => {
    const backend = new ScriptedBackend({ limits: { kvBlocks: 64 } });
    return {
      engine: new LocalEngine(backend, { eventBuffer: 4 }),
      forwards: () => backend.forwards,
    };
  })();
  const slow = await engine.submit(request([1], { maxTokens: 50, ignoreEos: true }));
  const quick = await run(engine, request([2], { maxTokens: 40, ignoreEos: true }));
  assertEquals(quick.tokens.length, 40);
  assertEquals((await engine.stats()).generatedTokens, 44);
  const before = forwards();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals(forwards(), before, "an engine whose readers all lag does not spin");
  assertEquals((await read(slow)).tokens.length, 50);
});

Deno.test("LocalEngine takes the blocks of a paused sequence when another needs them", async () => {
  const engine = engineOf({ limits: { kvBlocks: 4 } }, { eventBuffer: 4 });
  const asked = request(promptOf(20), { maxTokens: 30, ignoreEos: true });
  const slow = await engine.submit(asked);
  const big = await run(engine, request(promptOf(50, 2), { maxTokens: 14, ignoreEos: true }));
  assertEquals(big.tokens.length, 14);
  assertEquals((await read(slow)).tokens, (await run(engineOf(), asked)).tokens);
});

Deno.test("LocalEngine decodes in every step of a long prefill", async () => {
  const steps: number[][] = [];
  const engine = engineOf({
    limits: { kvBlocks: 256 },
    onForward: (_, batch) => void steps.push(batch.map(({ tokens }) => tokens.length)),
  }, { prefillChunk: 8 });
  const stream = await engine.submit(request([1], { maxTokens: 200, ignoreEos: true }));
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  const long = run(engine, request(promptOf(800), { maxTokens: 1 }));
  for (let next = await events.next(); !next.done; next = await events.next());
  await long;
  const mixed = steps.filter((step) => step.length === 2);
  assertEquals(mixed.length, 100);
  assert(mixed.every(([decode, prefill]) => decode === 1 && prefill === 8));
});

Deno.test("LocalEngine lets no stream of small requests starve a big one", async () => {
  const engine = engineOf({ limits: { kvBlocks: 16 } });
  let done = false, later = 0;
  const small = async (i: number) => {
    await run(engine, request(promptOf(20, i), { maxTokens: 12, ignoreEos: true }));
  };
  const flood = Array.from({ length: 8 }, async (_, i) => {
    for (let round = 0; !done; round++) {
      if (round >= 1000) throw new Error("the big request starves");
      await small(1000 * i + round);
      later++;
    }
  });
  const big = run(engine, request(promptOf(200, 9), { maxTokens: 56, ignoreEos: true }))
    .then(({ tokens }) => {
      done = true;
      return tokens.length;
    });
  assertEquals(await big, 56);
  await Promise.all(flood);
  assert(later > 8);
});

Deno.test("LocalEngine runs an urgent request before others under a policy that says so", async () => {
  const urgent = {
    name: "urgent",
    refreshSteps: 0,
    key: ({ priority }: { priority: number }) => -priority,
  };
  for (const kvBlocks of [8, 64]) {
    const order: string[] = [];
    const runs: Promise<void>[] = [];
    const ask = async (name: string, priority: number) => {
      const asked = request(promptOf(40, priority), { maxTokens: 60, priority, ignoreEos: true });
      await run(engine, asked);
      order.push(name);
    };
    const engine = engineOf({
      limits: { kvBlocks },
      onForward: (call) => void (call === 12 && runs.push(ask("high", 1))),
    }, { policy: urgent, maxRunning: 1 });
    for (let i = 0; i < 3; i++) runs.push(ask("low", 0));
    await Promise.all(runs);
    await Promise.all(runs);
    assertEquals(order, ["high", "low", "low", "low"]);
    assertEquals((await engine.stats()).preemptions > 0, kvBlocks === 8);
  }
});
