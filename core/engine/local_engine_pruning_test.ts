/** Pruned attention in the engine: who is pruned and how, and that nothing else depends on it. */
import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertGreater,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { promptOf, request, run } from "../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../tests/support/scripted_backend.ts";
import type { AttentionControl } from "../entropic/pruning.ts";
import { BackendError, RequestError } from "../errors.ts";
import type { AttentionSettings } from "./attention/attention_settings.ts";
import type { SequenceInput } from "./backend.ts";
import type { SequenceRequest } from "./engine.ts";
import type { LocalEngineOptions } from "./engine_options.ts";
import { LocalEngine } from "./local_engine.ts";

/** Prunes from 70 tokens on, and shadows nothing. */
const EARLY: AttentionSettings = { denseBelow: 70, shadowEvery: 0 };
const MASS: AttentionControl = { policy: "mass", mass: 0.8, minBlocks: 4 };

function engineOf(backend: ScriptedOptions = {}, options: LocalEngineOptions = {}) {
  const scripted = new ScriptedBackend({ prunes: true, ...backend });
  return { scripted, engine: new LocalEngine(scripted, { attention: EARLY, ...options }) };
}

const asking = (length: number, fields: Parameters<typeof request>[1] = {}) =>
  request(promptOf(length, length), { ignoreEos: true, attention: MASS, ...fields });

const tokensOf = async (engine: LocalEngine, asked: SequenceRequest) => [
  ...(await run(engine, asked)).tokens,
];

Deno.test("a prompt attends densely, its answer by plan once the context is long enough", async () => {
  const seen: SequenceInput[] = [];
  const { engine } = engineOf({ onForward: (_, batch) => void seen.push(...batch) });
  await run(engine, asking(60, { maxTokens: 20 }));
  await run(engine, asking(90, { maxTokens: 3 }));
  const mass = { kind: "mass", mass: 0.8, minBlocks: 4 } as const;
  for (const { position, tokens, attention } of seen) {
    const pruned = tokens.length === 1 && position >= 69;
    assertEquals(attention, pruned ? mass : { kind: "dense" }, `position ${position}`);
  }
  assertEquals(seen.filter(({ attention }) => attention.kind === "mass").length, 10 + 2);
});

Deno.test("a gain and the paper's threshold follow the entropy of the distribution drawn from", async () => {
  for (const control of [{ ...MASS, gain: 0.05 }, { policy: "paper", minBlocks: 4 }] as const) {
    const { engine, scripted } = engineOf();
    const { events } = await run(engine, asking(80, { attention: control, maxTokens: 12 }));
    const plans = scripted.plans.slice(2);
    const entropies = events.flatMap((event) => event.type === "token" ? event.entropy : []);
    let sum = 0;
    for (const [i, plan] of plans.entries()) {
      const entropy = entropies[i]!;
      sum += entropy;
      const mean = sum / (i + 1);
      if (plan.kind === "mass") {
        assertAlmostEquals(plan.mass, Math.min(1, 0.8 + 0.05 * (entropy - mean)), 1e-9);
      } else if (plan.kind === "threshold") {
        assertAlmostEquals(plan.threshold, 0.001 * (1 - entropy / Math.log(64)), 1e-9);
      } else throw new Error("a dense step");
    }
    assertEquals(plans.length, 11);
  }
});

/** Requests of all kinds, some with common prompts. */
function mixture(): SequenceRequest[] {
  const controls: AttentionControl[] = [
    MASS,
    { ...MASS, gain: 0.1 },
    { policy: "paper", minBlocks: 4, threshold: 0.01 },
    { policy: "off" },
    { policy: "mass", minBlocks: 5 },
  ];
  return Array.from({ length: 20 }, (_, i) =>
    request(promptOf(20 + 30 * (i % 4), 1 + i % 3), {
      temperature: 0.5 * (i % 2),
      seed: BigInt(i),
      maxTokens: 12 + (11 * i) % 50,
      ignoreEos: true,
      attention: controls[i % controls.length]!,
    }));
}

async function tokensAlone(asked: readonly SequenceRequest[]): Promise<number[][]> {
  const limits = { kvBlocks: 256 };
  return await Promise.all(asked.map((one) => tokensOf(engineOf({ limits }).engine, one)));
}

Deno.test("pruned sequences give the same tokens in a batch, swapped out, and computed again", async () => {
  const asked = mixture();
  const alone = await tokensAlone(asked);
  for (const [kvBlocks, hostBytes] of [[256, 0], [14, 1e9], [14, 0], [14, 600]] as const) {
    const { engine } = engineOf({ limits: { kvBlocks } }, { hostBytes });
    const together = await Promise.all(asked.map((one) => tokensOf(engine, one)));
    assertEquals(together, alone, `${kvBlocks} blocks, ${hostBytes} bytes`);
    const { preemptions, kvBlocksFree, kvBlocksTotal } = await engine.stats();
    assertEquals(preemptions > 0, kvBlocks === 14);
    assertEquals(kvBlocksFree, kvBlocksTotal);
  }
});

Deno.test("the plan is what a pruned sequence's tokens depend on", async () => {
  const [dense, mass, other] = await tokensAlone([
    asking(60, { attention: { policy: "off" } }),
    asking(60),
    asking(60, { attention: { ...MASS, mass: 0.9 } }),
  ]);
  assert(String(dense) !== String(mass) && String(mass) !== String(other));
});

Deno.test("dense and pruned requests share a prompt's blocks, whoever comes first", async () => {
  const dense = asking(100, { attention: { policy: "off" } }), pruned = asking(100);
  const alone = await tokensAlone([dense, pruned]);
  for (const order of [[0, 1], [1, 0]]) {
    const { engine } = engineOf();
    for (const [turn, which] of order.entries()) {
      const { tokens, end } = await run(engine, which === 0 ? dense : pruned);
      assertEquals([...tokens], alone[which]);
      assertEquals(end.usage.cachedTokens, turn === 0 ? 0 : 96);
    }
  }
});

Deno.test("what a pruned answer wrote is no prefix for anybody", async () => {
  const { engine } = engineOf();
  const first = await run(engine, asking(50, { maxTokens: 60 }));
  for (const attention of [{ policy: "off" }, MASS] as const) {
    const prompt = [...promptOf(50, 50), ...first.tokens, 5, 6, 7];
    const longer = request(prompt, { ignoreEos: true, attention });
    const { tokens, end } = await run(engine, longer);
    assertEquals([...tokens], (await tokensAlone([longer]))[0]);
    if (attention.policy === "off") assertEquals(end.usage.cachedTokens, 64);
  }
});

Deno.test("a dense answer stays a prefix, also in a sequence that is pruned later", async () => {
  const { engine } = engineOf();
  const first = await run(engine, asking(10, { maxTokens: 90 }));
  const prompt = [...promptOf(10, 10), ...first.tokens, 5, 6, 7];
  const { end } = await run(engine, request(prompt, { ignoreEos: true }));
  assertEquals(end.usage.cachedTokens, 64, "69 tokens attended densely");
});

Deno.test("a pruned sequence that is computed again takes no dense blocks for its own", async () => {
  // The same tokens drawn, whatever attention does: a twin that is dense fills the prefix cache.
  const shape: ScriptedOptions["shape"] = (logits, history) => {
    logits.fill(0);
    logits[1 + history.length % 60] = 50;
  };
  const hashes: number[] = [];
  for (const disturbed of [false, true]) {
    const { engine, scripted } = engineOf(
      { shape, limits: { kvBlocks: 20 } },
      {
        hostBytes: 0,
        policy: { name: "newest", refreshSteps: 0, key: ({ id }) => -id },
        maxRunning: 1,
      },
    );
    const stream = await engine.submit(asking(40, { maxTokens: 100 }));
    const events = stream[Symbol.asyncIterator]();
    for (let i = 0; i < 70; i++) await events.next();
    if (disturbed) {
      await run(engine, asking(40, { maxTokens: 100, attention: { policy: "off" } }));
      await run(engine, asking(200, { maxTokens: 100, attention: { policy: "off" } }));
      await run(engine, asking(40, { maxTokens: 100, attention: { policy: "off" } }));
      assertGreater((await engine.stats()).preemptions, 0);
    }
    const plans = scripted.plans.length;
    for (let next = await events.next(); !next.done; next = await events.next());
    hashes.push(scripted.historyHash);
    assertGreater(scripted.plans.length, plans);
  }
  assertEquals(hashes[0], hashes[1]);
});

Deno.test("LocalEngine reports what a sequence's attention read, and its own totals", async () => {
  const { engine } = engineOf();
  const { events, end } = await run(engine, asking(100, { maxTokens: 30 }));
  const report = end.attention!;
  assertEquals([report.policy, report.steps, report.prunedSteps], ["mass", 29, 29]);
  assert(report.bytesRead < report.bytesTotal && report.macs < report.macsTotal);
  assertAlmostEquals(report.massDropped, 0.1, 1e-12);
  const tokens = events.flatMap((event) => event.type === "token" ? [event.attention!] : []);
  assertEquals(tokens[0], { plan: { kind: "dense" }, share: 1 });
  assert(tokens.slice(1).every(({ plan, share }) => plan.kind === "mass" && share < 1));
  const { attention: { totals }, cost } = await engine.stats();
  assertEquals([totals.steps, totals.prunedSteps], [129, 29]);
  assertEquals(totals.bytesRead, cost.kvBytes);
  assertEquals(end.cost.kvBytes, cost.kvBytes);
});

Deno.test("tokens that are computed again count in the totals, not in the report", async () => {
  const { engine } = engineOf({ limits: { kvBlocks: 10 } }, { hostBytes: 0 });
  const runs = await Promise.all(
    [1, 2].map((seed) =>
      run(engine, request(promptOf(60, seed), { maxTokens: 60, ignoreEos: true, attention: MASS }))
    ),
  );
  const { preemptions, attention } = await engine.stats();
  assertGreater(preemptions, 0);
  const steps = runs.map(({ end }) => end.attention!.steps).reduce((sum, count) => sum + count);
  assert(steps >= 2 * 59 - preemptions && steps <= 2 * 59);
  assertGreater(attention.totals.steps, 2 * (60 + 59));
});

Deno.test("a dense sequence says nothing of attention", async () => {
  const { engine } = engineOf();
  const { events, end } = await run(engine, asking(60, { attention: { policy: "off" } }));
  assert(events.every((event) => event.type !== "token" || event.attention === undefined));
  assertEquals(end.attention, undefined);
});

Deno.test("the engine's policy is for requests that name none, and its other fields for all", async () => {
  const attention = { ...EARLY, policy: "mass", mass: 0.7, minBlocks: 6 } as const;
  const { engine, scripted } = engineOf({}, { attention });
  assertEquals(engine.info.attention.policy, "mass");
  await run(engine, request(promptOf(100), { maxTokens: 2, ignoreEos: true }));
  assertEquals(scripted.plans.at(-1), { kind: "mass", mass: 0.7, minBlocks: 6 });
  await run(engine, asking(100, { maxTokens: 2, attention: { policy: "mass", mass: 0.9 } }));
  assertEquals(scripted.plans.at(-1), { kind: "mass", mass: 0.9, minBlocks: 6 });
  await run(engine, asking(100, { maxTokens: 2, attention: { policy: "off" } }));
  assertEquals(scripted.plans.at(-1), { kind: "dense" });
});

Deno.test("without a sketch the default is dense and says why, and asking for more is refused", async () => {
  const { engine } = engineOf({ prunes: false }, { attention: { ...EARLY, policy: "mass" } });
  const { policy, allowed, reason } = engine.info.attention;
  assertEquals([policy, allowed], ["off", ["off"]]);
  assert(reason?.includes("no sketch"));
  assertEquals((await engine.stats()).attention.reason, reason);
  const plain = await run(engine, request(promptOf(60), { ignoreEos: true }));
  assertEquals([plain.tokens.length, plain.end.attention], [16, undefined]);
  const error = await assertRejects(() => engine.submit(asking(60)), RequestError, "allowed: off");
  assertEquals(error.param, "entropic.attention.policy");
});

Deno.test("LocalEngine refuses bad attention by name", async () => {
  const { engine } = engineOf({}, { attention: { leastMass: 0.6, leastBlocks: 8 } });
  const bad: [string, object, string][] = [
    ["policy", { policy: "magic" }, "off, mass, paper"],
    ["mass", { mass: 0.59 }, "[0.6, 1]"],
    ["mass", { mass: NaN }, "[0.6, 1]"],
    ["mass", { mass: 1.01 }, "[0.6, 1]"],
    ["min_blocks", { minBlocks: 7 }, ">= 8"],
    ["min_blocks", { minBlocks: 9.5 }, "whole number"],
    ["gain", { gain: 2 }, "[-1, 1]"],
    ["threshold", { threshold: -0.1 }, "[0, 1]"],
  ];
  for (const [name, fields, says] of bad) {
    const asked = asking(5, { attention: { policy: "mass", ...fields } });
    const error = await assertRejects(() => engine.submit(asked), RequestError, says);
    assertEquals(error.param, `entropic.attention.${name}`);
  }
  for (const latencyTarget of [0, -1, NaN, Infinity]) {
    const asked = asking(5, { latencyTarget });
    const error = await assertRejects(() => engine.submit(asked), RequestError, "> 0");
    assertEquals(error.param, "entropic.latency_target");
  }
});

Deno.test("LocalEngine refuses settings out of range", () => {
  const bad: AttentionSettings[] = [
    { mass: 0.4 },
    { leastMass: 0.4 },
    { leastBlocks: 3 },
    { denseBelow: -1 },
    { divergence: 0 },
    { divergence: Infinity },
    { mass: 0.6, leastMass: 0.7 },
    { minBlocks: 8, leastBlocks: 9 },
    { mass: "0.9" as unknown as number },
    { shadowEvery: 0.5 },
    { policy: "magic" as "mass" },
  ];
  for (const attention of bad) {
    assertThrows(() => engineOf({}, { attention }), RangeError, "Cannot use attention");
  }
  assertThrows(() => engineOf({}, { entropyFloor: NaN }), RangeError, "entropy floor");
});

Deno.test("a sequence that moves to a backend without a sketch attends densely", async () => {
  const onForward = () => {
    throw new BackendError("Cannot go on: the device is lost", { fatal: true });
  };
  const { engine } = engineOf({ onForward }, {
    maxRunning: 1,
    attention: { ...EARLY, policy: "mass" },
    recover: () => Promise.resolve(new ScriptedBackend()),
  });
  const settled = await Promise.allSettled([
    run(engine, request(promptOf(60, 1))),
    run(engine, request(promptOf(60, 2), { ignoreEos: true })),
    run(engine, asking(60)),
  ]);
  assertEquals(settled.map(({ status }) => status), ["rejected", "fulfilled", "rejected"]);
  const [, moved, refused] = settled;
  assert(moved?.status === "fulfilled" && refused?.status === "rejected");
  assertEquals([moved.value.end.attention?.policy, moved.value.end.attention?.prunedSteps], [
    "off",
    0,
  ]);
  assert(refused.reason instanceof RequestError);
  assertEquals(engine.info.attention.policy, "off");
});

Deno.test("the entropy floor of the engine is that of its sequences' clocks", async () => {
  const asked = request(promptOf(9), { ignoreEos: true, temperature: 1, maxTokens: 60 });
  const taus = await Promise.all([0, 3.5, 100].map(async (entropyFloor) => {
    const { engine } = engineOf({}, { entropyFloor });
    assertEquals(engine.info.entropyFloor, entropyFloor);
    return (await run(engine, asked)).end.tau;
  }));
  assert(taus[0]! > taus[1]! && taus[1]! > 0);
  assertEquals(taus[2], 0);
});
