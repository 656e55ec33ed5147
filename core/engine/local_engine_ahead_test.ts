/** Steps that begin before the one before them was read change no answer. */
import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import fc from "fast-check";
import { promptOf, read, request, run } from "../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../tests/support/scripted_backend.ts";
import { BackendError } from "../errors.ts";
import type { Draw } from "./backend.ts";
import type { EndEvent, SequenceEvent, SequenceRequest } from "./engine.ts";
import type { LocalEngineOptions } from "./engine_options.ts";
import { LocalEngine } from "./local_engine.ts";
import { yieldToEventLoop } from "./yield_to_event_loop.ts";

function engineOf(backend: ScriptedOptions = {}, options: LocalEngineOptions = {}) {
  const scripted = new ScriptedBackend({ overlaps: true, ...backend });
  return { scripted, engine: new LocalEngine(scripted, options) };
}

/** An event without what the clock on the wall says. */
function timeless(event: SequenceEvent): unknown {
  if (event.type !== "end") return event;
  return { ...event, timings: undefined, cost: { ...event.cost, seconds: 0 } };
}

const mostly = <T>(usual: T, other: T) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, fc.constant(other));

const samplings = fc.record({
  temperature: fc.constantFrom(0, 0, 0.3, 1, 2),
  topK: fc.constantFrom(0, 0, 5, 20),
  topP: fc.constantFrom(1, 1, 0.9),
  minP: fc.constantFrom(0, 0, 0.1),
  repetitionPenalty: mostly(1, 1.1),
  presencePenalty: mostly(0, 0.5),
  logitBias: mostly<(readonly [number, number])[]>([], [[5, 1]]),
  law: mostly<"seed" | undefined>(undefined, "seed"),
}).map(({ law, ...rest }) => ({
  ...rest,
  ...(law && rest.temperature > 0 && { temperatureControl: { law } }),
}));

/** All that a request can ask for which decides whether its next token is foreseeable. */
const requests: fc.Arbitrary<SequenceRequest> = fc.record({
  seed: fc.integer({ min: 1, max: 4 }),
  length: fc.integer({ min: 1, max: 40 }),
  sampling: samplings,
  maxTokens: fc.integer({ min: 0, max: 60 }),
  stop: fc.integer({ min: 1, max: 63 }),
  ignoreEos: fc.boolean(),
  minTokens: mostly(0, 6),
  topLogprobs: fc.integer({ min: 0, max: 3 }),
  promptLogprobs: mostly(false, true),
}).map(({ seed, length, stop, sampling, ...rest }) => ({
  ...rest,
  prompt: promptOf(length, seed),
  stopTokens: [stop],
  sampling: { ...sampling, seed: BigInt(seed) },
}));

/** What steps draw for themselves; without, one at a time leaves that to the engine. */
const DRAWN = {
  "what they should": undefined,
  "anything": (logits: Float32Array, { u }: Draw) => Math.floor(7919 * u) % logits.length,
};

for (const [what, drawn] of Object.entries(DRAWN)) {
  Deno.test(`LocalEngine answers the same with steps in flight that draw ${what} as without`, async () => {
    let followed = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(requests, { minLength: 1, maxLength: 6 }), async (asked) => {
        const outcomes = [];
        for (const overlaps of [false, true]) {
          const { engine, scripted } = engineOf({
            overlaps,
            limits: { kvBlocks: 256 },
            ...(drawn && { drawn }),
          });
          const runs = await Promise.all(asked.map((one) => run(engine, one)));
          const { kvBlocksFree, kvBlocksTotal, tau, finished, generatedTokens, cost, attention } =
            await engine.stats();
          assertEquals(kvBlocksFree, kvBlocksTotal);
          outcomes.push({
            // A sum over sequences, in the order that each step has them.
            tau: tau.toPrecision(12),
            ...{ finished, generatedTokens, cost: { ...cost, seconds: 0 } },
            attention: attention.totals,
            runs: runs.map(({ events }) => events.map(timeless)),
          });
          followed += scripted.follows;
        }
        assertEquals(outcomes[1], outcomes[0]);
      }),
      { numRuns: 150, seed: 7 },
    );
    assertGreater(followed, 1000);
  });
}

Deno.test("LocalEngine answers the same with steps in flight where blocks and places are scarce", async () => {
  let followed = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(requests, { minLength: 2, maxLength: 8 }),
      fc.record({
        kvBlocks: fc.integer({ min: 6, max: 16 }),
        maxRunning: fc.integer({ min: 1, max: 8 }),
        hostBytes: fc.constantFrom(0, 1e6),
        prefillChunk: fc.integer({ min: 1, max: 32 }),
      }),
      async (asked, { kvBlocks, ...options }) => {
        const { engine, scripted } = engineOf({ limits: { kvBlocks } }, options);
        const alone = engineOf({ overlaps: false, limits: { kvBlocks: 256 } }).engine;
        const runs = await Promise.all(asked.map((one) => run(engine, one)));
        for (const [i, one] of asked.entries()) {
          const { tokens, end } = await run(alone, one);
          assertEquals(runs[i]!.tokens, tokens);
          assertEquals(runs[i]!.end.tau, end.tau);
          assertEquals(runs[i]!.end.stopToken, end.stopToken);
        }
        const { kvBlocksFree, kvBlocksTotal } = await engine.stats();
        assertEquals(kvBlocksFree, kvBlocksTotal);
        followed += scripted.follows;
      },
    ),
    { numRuns: 150, seed: 7 },
  );
  assertGreater(followed, 500);
});

const greedy = (seed: number, maxTokens: number) =>
  request(promptOf(20, seed), { maxTokens, ignoreEos: true });

Deno.test("LocalEngine begins each step behind the one before, greedy or drawn", async () => {
  for (const sampling of [{ temperature: 0 }, { temperature: 2, topP: 0.9 }]) {
    const { engine, scripted } = engineOf();
    const { tokens } = await run(engine, { ...greedy(1, 33), sampling: { ...sampling, seed: 3n } });
    assertEquals([tokens.length, scripted.forwards, scripted.follows], [33, 33, 32]);
  }
});

Deno.test("LocalEngine takes what steps draw, but where tokens or entropies decide", async () => {
  for (const overlaps of [false, true]) {
    const { engine } = engineOf({ overlaps, drawn: () => 7 });
    const drawn = await run(engine, request(promptOf(9), { temperature: 1, ignoreEos: true }));
    assertEquals(drawn.tokens, new Array(16).fill(7));
    const others: Partial<SequenceRequest["sampling"]>[] = [
      { logitBias: [[7, -100]] },
      { presencePenalty: 0.1 },
      { temperatureControl: { law: "seed" } },
    ];
    for (const fields of others) {
      const sampling = { temperature: 1, seed: 1n, ...fields };
      const { tokens } = await run(engine, {
        ...request(promptOf(9), { ignoreEos: true }),
        sampling,
      });
      assertGreater(new Set(tokens).size, 8, Object.keys(fields).join());
    }
  }
});

Deno.test("LocalEngine goes ahead once no token is banned any more", async () => {
  const { engine, scripted } = engineOf();
  await run(engine, { ...greedy(1, 17), minTokens: 5, stopTokens: [3] });
  assertEquals(scripted.follows, 11);
});

Deno.test("LocalEngine waits for each step where a token cannot be foreseen", async () => {
  const bias = [[5, 1]] as const;
  const sampling = { temperature: 0, seed: 1n };
  for (
    const fields of [
      { sampling: { seed: 1n, temperatureControl: { law: "seed" } } } as const,
      { sampling: { ...sampling, logitBias: bias } },
      { sampling: { ...sampling, frequencyPenalty: 0.1, repetitionPenalty: 1.1 } },
      { minTokens: 20, stopTokens: [3] },
    ]
  ) {
    const { engine, scripted } = engineOf();
    const asked = request(promptOf(20, 2), { maxTokens: 17, ignoreEos: true, ...fields });
    await Promise.all([run(engine, greedy(1, 16)), run(engine, asked)]);
    assertEquals(scripted.follows, 0, Object.keys(fields).join());
  }
  const pruning = engineOf({ prunes: true }, { attention: { policy: "mass" } });
  await run(pruning.engine, greedy(1, 16));
  assertEquals(pruning.scripted.follows, 0);
});

Deno.test("LocalEngine lets a newcomer in although a step was begun ahead", async () => {
  let late: Promise<{ readonly end: EndEvent }> | undefined;
  const { engine, scripted } = engineOf({
    onForward: (call) => {
      if (call === 5) late = run(engine, greedy(2, 8));
    },
  });
  await run(engine, greedy(1, 64));
  const { end } = await late!;
  assertEquals(end.usage.completionTokens, 8);
  assertEquals(scripted.forwards, 64, "it ran beside the other");
});

Deno.test("LocalEngine drops what it computed ahead for a sequence that ended", async () => {
  for (const stop of ["stop", "abort"] as const) {
    const whole = (await run(engineOf().engine, greedy(1, 40))).tokens;
    const { engine } = engineOf();
    const other = run(engine, greedy(2, 40));
    const at = whole.findIndex((token, i) => i > 5 && !whole.slice(0, i).includes(token));
    const stream = await engine.submit({
      ...greedy(1, 40),
      ...(stop === "stop" && { stopTokens: [whole[at]!] }),
    });
    const tokens: number[] = [];
    let end: SequenceEvent | undefined;
    for await (const event of stream) {
      if (event.type === "token" && tokens.push(event.token) === at && stop === "abort") {
        stream.abort();
      }
      end = event;
    }
    assert(end?.type === "end");
    assertEquals(end.reason, stop);
    assertEquals(tokens, whole.slice(0, tokens.length));
    assertEquals(end.usage.completionTokens, tokens.length);
    assertEquals((await other).tokens, (await run(engineOf().engine, greedy(2, 40))).tokens);
    const { kvBlocksFree, kvBlocksTotal } = await engine.stats();
    assertEquals(kvBlocksFree, kvBlocksTotal);
  }
});

Deno.test("LocalEngine computes again what it had ahead of a reader who fell behind", async () => {
  const { engine, scripted } = engineOf({}, { eventBuffer: 4 });
  const stream = await engine.submit(greedy(1, 40));
  const other = await run(engine, greedy(2, 40));
  assertEquals((await engine.stats()).generatedTokens, 4 + 40);
  const { tokens } = await read(stream);
  const alone = await run(engineOf().engine, greedy(1, 40));
  assertEquals(tokens, alone.tokens);
  assertEquals(other.tokens.length, 40);
  assertGreater(scripted.follows, 20);
});

Deno.test("LocalEngine fails both steps in flight with their machine, and goes on with another", async () => {
  for (const call of [3, 4]) {
    let rebuilt = 0;
    let second: ReturnType<typeof run> | undefined;
    const { scripted, engine } = engineOf({
      onForward: async (n) => {
        if (n < call) return;
        while (scripted.follows < call) await yieldToEventLoop();
        second ??= run(engine, greedy(2, 40));
        throw new BackendError("Cannot go on: the device is lost", { fatal: true });
      },
    }, {
      recover: () => {
        rebuilt++;
        return Promise.resolve(new ScriptedBackend({ overlaps: true }));
      },
    });
    await assertRejects(() => run(engine, greedy(1, 40)), BackendError, "the device is lost");
    assertEquals((await second!).tokens, (await run(engineOf().engine, greedy(2, 40))).tokens);
    assertEquals([rebuilt, scripted.follows], [1, call]);
    assert(scripted.disposed);
    const { kvBlocksFree, kvBlocksTotal } = await engine.stats();
    assertEquals(kvBlocksFree, kvBlocksTotal);
  }
});

Deno.test("LocalEngine ends the sequences of a step that failed, though the next had begun", async () => {
  const { engine } = engineOf({
    onForward: (call) => {
      if (call === 3) throw new BackendError("Cannot compute: try later", { fatal: false });
    },
  });
  await assertRejects(() => run(engine, greedy(1, 40)), BackendError, "try later");
  assertEquals((await run(engine, greedy(2, 8))).tokens.length, 8);
  const { kvBlocksFree, kvBlocksTotal } = await engine.stats();
  assertEquals(kvBlocksFree, kvBlocksTotal);
});

Deno.test("LocalEngine waits for a step begun ahead when it is disposed", async () => {
  const { engine, scripted } = engineOf();
  const stream = await engine.submit(greedy(1, 400));
  const events = stream[Symbol.asyncIterator]();
  for (let i = 0; i < 5; i++) await events.next();
  const { forwards } = scripted;
  await engine.dispose();
  assert(scripted.disposed);
  assert(scripted.forwards <= forwards + 2);
});
