/**
 * A seeded fuzzer of the whole engine over the scripted backend: requests of every kind, aborts,
 * readers that stop and go, poisoned rows, failing and dying backends, with one step in flight or, where
 * most are greedy, two. Whatever happens, each stream
 * ends once, its tokens are those of the same request run alone, and all blocks come back.
 */
import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import type { AttentionSettings } from "../../core/engine/attention/attention_settings.ts";
import type { SequenceRequest, SequenceStream } from "../../core/engine/engine.ts";
import type { LocalEngineOptions } from "../../core/engine/engine_options.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import type { AttentionControl } from "../../core/entropic/pruning.ts";
import { BackendError } from "../../core/errors.ts";
import { promptOf, request, run } from "../support/engine_runs.ts";
import { ScriptedBackend } from "../support/scripted_backend.ts";

const POISON = 61;
const FAMILIES = [promptOf(90, 1, 60), promptOf(90, 2, 60)] as const;

/** What is left open would be the controller's, which depends on what else the engine does. */
const ATTENTION: readonly AttentionControl[] = [
  { policy: "off" },
  { policy: "mass", mass: 0.8 },
  { policy: "mass", mass: 0.9, gain: 0.05 },
  { policy: "paper", threshold: 0.01 },
];
/** Prunes from 65 tokens on. */
const SHORT: AttentionSettings = { denseBelow: 0, minBlocks: 4, shadowEvery: 3 };

/** A linear congruential generator: the same numbers on every machine. */
function diceOf(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * n);
  };
}

/** @param plain One request in so many asks for more than greedy tokens and dense attention. */
function randomRequest(below: (n: number) => number, plain = 1): SequenceRequest {
  const special = below(plain) === 0;
  const shared = FAMILIES[below(2)]!.slice(0, below(70));
  const prompt = [...shared, ...promptOf(1 + below(30), below(1e6), 60)];
  if (below(40) === 0) prompt.push(POISON);
  const sampling = [
    { temperature: 0 },
    { temperature: 0.8, topP: 0.9 },
    { topK: 5, minP: 0.05 },
    { repetitionPenalty: 1.2, frequencyPenalty: 0.3 },
    { logitBias: [[3, 4], [4, -Infinity]] as const },
  ][special ? below(5) : 0]!;
  return {
    ...request(prompt, {
      maxTokens: below(40),
      minTokens: below(3),
      ignoreEos: below(2) === 0,
      stopTokens: below(4) === 0 ? [9] : [],
      priority: below(3),
      promptLogprobs: below(12) === 0,
      attention: ATTENTION[special ? below(ATTENTION.length) : 0]!,
    }),
    sampling: { ...sampling, seed: BigInt(below(1e6)) },
  };
}

/** What the request answers with an engine to itself: its tokens, and whether it fails. */
async function alone(
  asked: SequenceRequest,
): Promise<{ tokens: readonly number[]; fails: boolean }> {
  const engine = new LocalEngine(
    new ScriptedBackend({ limits: { kvBlocks: 64 }, poison: POISON, prunes: true }),
    { eventBuffer: 1000, attention: { ...SHORT, shadowEvery: 0 } },
  );
  const stream = await engine.submit(asked);
  const tokens: number[] = [];
  try {
    for await (const event of stream) if (event.type === "token") tokens.push(event.token);
    return { tokens, fails: false };
  } catch {
    return { tokens, fails: true };
  }
}

/** A reader that stops and goes, and sometimes leaves; answers what it saw of the end. */
async function readFitfully(
  stream: SequenceStream,
  below: (n: number) => number,
): Promise<{ tokens: number[]; ending: string; error?: unknown }> {
  const tokens: number[] = [];
  const leaveAfter = below(8) === 0 ? below(20) : Infinity;
  let ending = "left";
  try {
    for await (const event of stream) {
      assertEquals(ending, "left", "nothing comes after the end");
      if (event.type === "token") tokens.push(event.token);
      if (event.type === "end") ending = event.reason;
      if (ending === "left" && tokens.length >= leaveAfter) {
        if (below(2) === 0) break;
        stream.abort();
        stream.abort();
      }
      if (below(30) === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  } catch (error) {
    return { tokens, ending: "error", error };
  }
  return { tokens, ending };
}

/** How often things ran. */
interface Counts {
  readonly forwards: number;
  readonly follows: number;
  readonly shadows: number;
}

async function fuzz(
  seed: number,
  requests: number,
  options: LocalEngineOptions & { readonly overlaps: boolean },
): Promise<Counts> {
  const { overlaps } = options;
  const below = diceOf(seed);
  const backends: ScriptedBackend[] = [];
  const open = () => {
    const backend = new ScriptedBackend({
      limits: {
        kvBlocks: overlaps ? 40 : 16,
        maxBatchTokens: 24,
        maxOutputRows: 9,
        topK: 1 + below(12),
      },
      poison: POISON,
      prunes: true,
      overlaps,
      onForward: () => {
        const fate = below(600);
        if (fate < 2) throw new BackendError("Cannot compute now", { fatal: fate === 0 });
      },
    });
    backends.push(backend);
    return backend;
  };
  const engine = new LocalEngine(open(), {
    ...options,
    attention: SHORT,
    eventBuffer: 1 + below(6),
    prefillChunk: 1 + below(16),
    maxRunning: overlaps ? 8 : 1 + below(8),
    recover: () => Promise.resolve(open()),
  });
  let ended = 0;
  const clients = Array.from({ length: 8 }, async () => {
    for (let i = 0; i < requests / 8; i++) {
      const asked = randomRequest(below, overlaps ? 20 : 1);
      const expected = await alone(asked);
      const got = await readFitfully(await engine.submit(asked), below);
      ended++;
      if (got.ending === "error") assertInstanceOf(got.error, BackendError);
      const whole = got.ending === "length" || got.ending === "stop";
      assertEquals(got.tokens, expected.tokens.slice(0, whole ? undefined : got.tokens.length));
      assert(!whole || !expected.fails);
    }
  });
  await Promise.all(clients);
  let shadows = 0;
  while (true) {
    const stats = await engine.stats();
    if (stats.running + stats.waiting + stats.preempted > 0) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      continue;
    }
    assertEquals(stats.kvBlocksFree, stats.kvBlocksTotal);
    shadows = stats.attention.shadows;
    const { stop, length, abort, error } = stats.finished;
    assertEquals(stop + length + abort + error, ended);
    break;
  }
  await engine.dispose();
  assert(backends.every(({ disposed }) => disposed));
  return {
    forwards: backends.reduce((sum, { forwards }) => sum + forwards, 0),
    follows: backends.reduce((sum, { follows }) => sum + follows, 0),
    shadows,
  };
}

const urgent = {
  name: "urgent",
  refreshSteps: 0,
  key: ({ priority }: { readonly priority: number }) => -priority,
};

for (
  const [name, options] of Object.entries<LocalEngineOptions>({
    "swapping": {},
    "computing again": { hostBytes: 0 },
    "a weak hash and little host memory": { hostBytes: 600, hashBlock: () => 1 },
    "priorities": { policy: urgent },
  })
) {
  Deno.test(`LocalEngine keeps its promises through random trouble with ${name}`, async () => {
    let forwards = 0, follows = 0, shadows = 0;
    for (let seed = 1; seed <= 6; seed++) {
      try {
        const ran = await fuzz(seed * 7919, 160, { ...options, overlaps: seed > 3 });
        forwards += ran.forwards;
        follows += ran.follows;
        shadows += ran.shadows;
      } catch (error) {
        throw new Error(`Failed under seed ${seed}`, { cause: error });
      }
    }
    console.log(`${forwards} steps, ${follows} of them ahead, ${shadows} shadows`);
    // Of all seeds together: who runs when is the event loop's to say, and one may have no shadow.
    assert(forwards > 1000 && follows > 200 && shadows > 100);
  });
}

Deno.test("randomRequest asks for things that succeed alone", async () => {
  const below = diceOf(5);
  let generated = 0;
  for (let i = 0; i < 20; i++) {
    const asked = { ...randomRequest(below), promptLogprobs: false, attention: ATTENTION[0]! };
    if (Array.from(asked.prompt).includes(POISON)) continue;
    const engine = new LocalEngine(new ScriptedBackend());
    generated += (await run(engine, asked)).tokens.length;
  }
  assert(generated > 50);
});
