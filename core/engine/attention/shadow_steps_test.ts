/** Shadows and what they steer, in the engine over a backend that errs as a test tells it. */
import { assert, assertAlmostEquals, assertEquals, assertGreater, assertLess } from "@std/assert";
import { promptOf, read, request, run } from "../../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../../tests/support/scripted_backend.ts";
import { divergence } from "../../entropic/divergence.ts";
import { BackendError } from "../../errors.ts";
import type { AttentionSettings } from "./attention_settings.ts";
import type { AttentionPlan, SequenceInput } from "../backend.ts";
import type { LocalEngineOptions } from "../engine_options.ts";
import { LocalEngine } from "../local_engine.ts";

/** Adds nats to a logit by the share that is left out: the more is dropped, the more it diverges. */
const harm = (scale: number) => (logits: Float32Array, plan: AttentionPlan) => {
  if (plan.kind === "mass") logits[3]! += scale * (1 - plan.mass);
};

/** A distribution of four likely tokens, the third of which `harm` strengthens. */
const shape: NonNullable<ScriptedOptions["shape"]> = (logits, history) => {
  logits.fill(-10);
  for (let i = 0; i < 4; i++) logits[i] = 0.3 * ((i + history.length) % 4);
};

function engineOf(
  attention: AttentionSettings,
  backend: ScriptedOptions = {},
  options: LocalEngineOptions = {},
) {
  const scripted = new ScriptedBackend({
    prunes: true,
    limits: { kvBlocks: 256, maxBatchTokens: 256 },
    shape,
    ...backend,
  });
  const settings = { denseBelow: 40, minBlocks: 4, ...attention };
  return { scripted, engine: new LocalEngine(scripted, { attention: settings, ...options }) };
}

const asking = (seed: number, maxTokens: number, mass?: number) =>
  request(promptOf(70, seed), {
    maxTokens,
    ignoreEos: true,
    attention: { policy: "mass", ...(mass !== undefined && { mass }) },
  });

/** Whether a batch is a shadow: a generated token, alone and dense. */
const isShadow = ([first, ...others]: readonly SequenceInput[]) =>
  others.length === 0 && first?.attention.kind === "dense" && first.position >= 70;

Deno.test("shadows change no answer", async () => {
  const outcomes = await Promise.all([0, 1, 3].map(async (shadowEvery) => {
    const scripted = { shape: (): void => {}, limits: { kvBlocks: 20 } };
    const { engine } = engineOf({ shadowEvery }, scripted);
    const runs = [1, 2, 3, 4].map((seed) => run(engine, asking(seed, 60, 0.8)));
    const tokens = (await Promise.all(runs)).map((one) => [...one.tokens]);
    const { attention, preemptions } = await engine.stats();
    assertGreater(preemptions, 0);
    return { tokens, shadows: attention.shadows };
  }));
  const [none, all, some] = outcomes;
  assertEquals(none!.shadows, 0);
  assert(all!.shadows > some!.shadows && some!.shadows > 0);
  for (const { tokens } of outcomes) assertEquals(tokens, none!.tokens);
});

Deno.test("every so many pruned steps has a shadow, of each sequence in turn", async () => {
  const shadowed: number[] = [];
  let steps = 0;
  const { engine } = engineOf({ shadowEvery: 5 }, {
    onForward: (_, batch) => {
      if (isShadow(batch)) shadowed.push(batch[0]!.blockTable[0]!);
      else if (batch.some(({ attention }) => attention.kind === "mass")) steps++;
    },
  });
  await Promise.all([1, 2, 3].map((seed) => run(engine, asking(seed, 41, 0.8))));
  assertEquals(steps, 40);
  assertEquals(shadowed.length, 8);
  assertEquals(new Set(shadowed.slice(0, 3)).size, 3);
  assertEquals(shadowed.slice(3, 6), shadowed.slice(0, 3));
  assertEquals((await engine.stats()).attention.shadows, 8);
});

Deno.test("a shadow measures KL(dense || pruned)", async () => {
  const expected: number[] = [];
  const { engine } = engineOf({ shadowEvery: 1 }, {
    prune: (logits, plan) => {
      const dense = logits.slice();
      harm(2)(logits, plan);
      expected.push(divergence(dense, logits));
    },
  });
  await run(engine, asking(1, 21, 0.8));
  const { attention } = await engine.stats();
  assertEquals([attention.shadows, expected.length], [20, 20]);
  const mean = expected.reduce((sum, nats) => sum + nats) / 20;
  assertGreater(mean, 0);
  assertAlmostEquals(attention.divergence, mean, 1e-12);
  assertAlmostEquals(attention.lengths[0]!.divergence.mass, mean, 1e-12);
});

Deno.test("the engine raises its own mass until the divergence keeps the bound", async () => {
  const { engine, scripted } = engineOf({ shadowEvery: 1, mass: 0.6, divergence: 0.01 }, {
    prune: harm(2),
  });
  await run(engine, asking(1, 600));
  const { attention } = await engine.stats();
  const { mass } = attention.lengths[0]!;
  assert(mass > 0.6 && mass < 0.99, `mass ${mass}`);
  assertEquals(attention.policy, "off", "the default of this engine");
  const masses = scripted.plans.flatMap((plan) => plan.kind === "mass" ? plan.mass : []);
  assertEquals(masses[0], 0.6);
  const late: number[] = [];
  const probe = new Float32Array(64).fill(0);
  for (const one of masses.slice(-100)) {
    const pruned = probe.slice();
    harm(2)(pruned, { kind: "mass", mass: one, minBlocks: 4 });
    late.push(divergence(probe, pruned));
  }
  assertLess(late.reduce((sum, nats) => sum + nats) / late.length, 0.01);
});

Deno.test("a mass that a request fixes is measured, and neither steers nor is steered", async () => {
  const { engine, scripted } = engineOf({ shadowEvery: 1, mass: 0.9 }, { prune: harm(100) });
  await run(engine, asking(1, 200, 0.6));
  const { attention } = await engine.stats();
  assertEquals(attention.shadows, 199);
  assertGreater(attention.divergence, attention.bound);
  assertAlmostEquals(attention.lengths[0]!.mass, 0.9, 1e-12);
  const masses = scripted.plans.flatMap((plan) => plan.kind === "mass" ? plan.mass : []);
  assertEquals(new Set(masses), new Set([0.6]));
});

Deno.test("a policy that fails its bound turns itself off and says so", async () => {
  const lines: string[] = [];
  const { engine, scripted } = engineOf({ policy: "mass", shadowEvery: 1 }, {
    prune: harm(10_000),
  }, { log: (line) => lines.push(line) });
  const { end } = await run(engine, request(promptOf(70), { maxTokens: 60, ignoreEos: true }));
  assertEquals(end.attention!.policy, "off");
  assertLess(end.attention!.prunedSteps, 10);
  assertEquals(end.attention!.steps, 59);
  const { attention } = await engine.stats();
  assertEquals(attention.policy, "off");
  assert(attention.reason?.includes("0.02 nats"), attention.reason);
  assertEquals(lines.length, 1);
  assert(lines[0]!.includes("dense from now on"), lines[0]);
  scripted.plans.length = 0;
  await run(engine, asking(2, 20));
  assert(scripted.plans.every(({ kind }) => kind === "dense"));
  await run(engine, asking(3, 20, 0.7));
  assertEquals(scripted.plans.filter(({ kind }) => kind === "mass").length, 19);
});

Deno.test("a policy that only requests ask for is told of as well when it fails", async () => {
  const { engine, scripted } = engineOf({ shadowEvery: 1 }, { prune: harm(10_000) });
  const { end } = await run(engine, asking(1, 60));
  assertEquals(end.attention!.policy, "off");
  const { policy, reason } = (await engine.stats()).attention;
  assertEquals(policy, "off");
  assert(reason?.startsWith("mass diverged"), reason);
  scripted.plans.length = 0;
  const paper = { policy: "paper" } as const;
  await run(engine, request(promptOf(70), { attention: paper, ignoreEos: true }));
  assert(scripted.plans.some(({ kind }) => kind === "threshold"), "the other policy goes on");
});

Deno.test("a shadow that fails costs its measurement and nothing else", async () => {
  const { engine } = engineOf({ shadowEvery: 2 }, {
    onForward: (_, batch) => {
      if (isShadow(batch)) throw new BackendError("Cannot compute: try later", { fatal: false });
    },
  });
  assertEquals((await run(engine, asking(1, 30, 0.8))).end.reason, "length");
  assertEquals((await engine.stats()).attention.shadows, 0);
});

Deno.test("a machine that is lost in a shadow is replaced", async () => {
  const { engine } = engineOf({ shadowEvery: 2 }, {
    onForward: (_, batch) => {
      if (isShadow(batch)) throw new BackendError("Cannot go on: lost", { fatal: true });
    },
  }, { recover: () => Promise.resolve(new ScriptedBackend({ prunes: true })) });
  const stream = await engine.submit(asking(1, 30, 0.8));
  const failed = await read(stream).then(() => undefined, (error: Error) => error.message);
  assertEquals(failed, "Cannot go on: lost");
  assertEquals((await run(engine, asking(1, 30, 0.8))).tokens.length, 30);
});

Deno.test("rows that are no distribution are no measurement", async () => {
  const { engine } = engineOf({ shadowEvery: 1 }, { prune: (logits) => logits.fill(NaN) });
  const outcome = await run(engine, asking(1, 30, 0.8)).then(() => "ended", () => "failed");
  assertEquals(outcome, "failed");
  const { shadows, divergence } = (await engine.stats()).attention;
  assertEquals([shadows, divergence], [0, 0]);
});

Deno.test("a shadow's time is told apart, and in no sequence's cost", async () => {
  let now = 0;
  const onForward = () => void (now += 10);
  const { engine } = engineOf({ shadowEvery: 1 }, { onForward }, { now: () => now });
  const { end } = await run(engine, asking(1, 21, 0.8));
  const { attention, forwardSeconds } = await engine.stats();
  assertAlmostEquals(attention.shadowSeconds, 0.2, 1e-9);
  assertAlmostEquals(forwardSeconds, 0.21, 1e-9);
  assertAlmostEquals(end.cost.seconds, 0.21, 1e-9);
});
