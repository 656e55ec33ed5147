/** Tokens that steps on WebGPU draw for themselves: the same however the engine runs them. */
import { assertAlmostEquals, assertEquals, assertGreater } from "@std/assert";
import type { Backend, FollowingInput } from "../../core/engine/backend.ts";
import type { SequenceEvent, SequenceRequest, TokenEvent } from "../../core/engine/engine.ts";
import type { LocalEngineOptions } from "../../core/engine/engine_options.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { blocks, part, rowsOf } from "../support/backend_steps.ts";
import { request, run } from "../support/engine_runs.ts";
import { ADAPTER } from "../support/gpu.ts";
import { tinyGpuBackend } from "../support/tiny_gpu_backend.ts";

const ignore = ADAPTER === undefined;
const PROMPT = Array.from({ length: 40 }, (_, i) => (7 * i + i * i) % 200);
const FILTERS = { temperature: 2, topK: 100, topP: 0.95, minP: 0.001 };
const LAW = { temperatureControl: { law: "seed" } } as const;

/** The host draws for the last one, and holds all to one step at a time until that ends. */
const ASKED: readonly SequenceRequest[] = [
  request(PROMPT, { maxTokens: 40, ignoreEos: true, topLogprobs: 3 }),
  request(PROMPT.slice(3, 20), { maxTokens: 12 }),
  request(PROMPT.slice(5, 9), { maxTokens: 25, stopTokens: PROMPT, promptLogprobs: true }),
  request(PROMPT.slice(0, 30), { maxTokens: 30, temperature: 1 }),
  request(PROMPT.slice(9, 30), { maxTokens: 40, sampling: { ...FILTERS, seed: 5n } }),
  request(PROMPT.slice(2, 30), { maxTokens: 4, sampling: { ...FILTERS, ...LAW, seed: 6n } }),
];

/** A backend, and how often a step of it followed another unread. */
async function backendOf(kvBlocks: number, ahead: boolean) {
  const backend = await tinyGpuBackend({ kvBlocks }, { type: "F16" });
  let follows = 0;
  const { follow } = backend;
  const counted = (batch: readonly FollowingInput[], signal?: AbortSignal) => {
    follows++;
    return follow.call(backend, batch, signal);
  };
  Object.assign(backend, { follow: ahead ? counted : undefined });
  return { backend, follows: () => follows };
}

/** What an answer says, but for what the clock on the wall does. */
function said(events: readonly SequenceEvent[]): unknown {
  return events.map((event) => {
    if (event.type !== "end") return event;
    const { cost, timings: _, ...rest } = event;
    return { ...rest, cost: { ...cost, seconds: 0 } };
  });
}

Deno.test({
  name: "LocalEngine on WebGPU says the same with two steps in flight as with one",
  ignore,
}, async () => {
  const outcomes = [];
  for (const ahead of [false, true]) {
    const { backend, follows } = await backendOf(64, ahead);
    const engine = new LocalEngine(backend);
    const runs = await Promise.all(ASKED.map((one) => run(engine, one)));
    outcomes.push(runs.map(({ events }) => said(events)));
    assertGreater(follows(), ahead ? 10 : -1);
    await backend.dispose();
  }
  assertEquals(outcomes[1], outcomes[0]);
});

/** Each grows from one block to five. */
const GROWING = [{ temperature: 0 }, { temperature: 0.8 }, { temperature: 3 }, FILTERS].map(
  (sampling, i) =>
    request(PROMPT.slice(i, i + 8), {
      ...{ maxTokens: 60, ignoreEos: true },
      sampling: { ...sampling, seed: BigInt(i) },
    }),
);

Deno.test({
  name: "LocalEngine on WebGPU draws the same alone, among others and after preemption",
  ignore,
}, async () => {
  const { backend: ample } = await backendOf(64, true);
  const alone: (readonly number[])[] = [];
  for (const one of GROWING) alone.push((await run(new LocalEngine(ample), one)).tokens);
  const preemptions = async (backend: Backend, options: LocalEngineOptions = {}) => {
    const engine = new LocalEngine(backend, options);
    const runs = await Promise.all(GROWING.map((one) => run(engine, one)));
    assertEquals(runs.map(({ tokens }) => tokens), alone);
    return (await engine.stats()).preemptions;
  };
  assertEquals(await preemptions(ample), 0);
  await ample.dispose();
  for (const ahead of [false, true]) {
    const { backend: scarce, follows } = await backendOf(8, ahead);
    for (const hostBytes of [0, 2 ** 20]) {
      assertGreater(await preemptions(scarce, { hostBytes }), 0);
    }
    assertGreater(follows(), ahead ? 10 : -1);
    await scarce.dispose();
  }
});

Deno.test({
  name: "LocalEngine on WebGPU tells how likely the tokens were that steps drew",
  ignore,
}, async () => {
  const { backend, follows } = await backendOf(64, true);
  const asked = request(PROMPT, { maxTokens: 60, ignoreEos: true, temperature: 4 });
  const { events, tokens } = await run(new LocalEngine(backend), asked);
  assertEquals(follows(), 59);
  await backend.forward([part(PROMPT.slice(0, -1), 0, blocks(7), "none")]);
  const drawnAfter = [PROMPT.at(-1)!, ...tokens.slice(0, -1)];
  const result = await backend.forward([part(drawnAfter, PROMPT.length - 1, blocks(7), "all")]);
  const rows = await rowsOf(backend, result);
  let unlisted = 0;
  const drawn = events.filter((event): event is TokenEvent => event.type === "token");
  for (const [i, { token, logprob, temperature }] of drawn.entries()) {
    const { logits, topIds } = rows[i]!;
    const z = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
    assertAlmostEquals(logprob, logits[token]! - Math.log(z), 1e-5);
    assertEquals(temperature, 4);
    if (!topIds.includes(token)) unlisted++;
  }
  assertGreater(unlisted, 20);
  await backend.dispose();
});
