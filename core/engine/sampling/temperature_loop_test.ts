import { assert, assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { promptOf, request, run } from "../../../tests/support/engine_runs.ts";
import { ScriptedBackend } from "../../../tests/support/scripted_backend.ts";
import { RequestError } from "../../errors.ts";
import { uncertainty } from "../../entropic/entropy.ts";
import { TEMPERATURE_LAWS } from "../../entropic/temperature.ts";
import type { SamplingParams, TokenEvent } from "../engine.ts";
import { LocalEngine } from "../local_engine.ts";

const steered = (temperatureControl: SamplingParams["temperatureControl"], seed = 5n) => ({
  ...request(promptOf(9), { ignoreEos: true, maxTokens: 60 }),
  sampling: { seed, ...(temperatureControl && { temperatureControl }) },
});

Deno.test("LocalEngine draws with the temperature that same-step solves, biases included", async () => {
  const rows: Float32Array[] = [];
  const shape = (logits: Float32Array) => void rows.push(logits.slice());
  const engine = new LocalEngine(new ScriptedBackend({ vocabularySize: 200, shape }));
  const asked = steered({ law: "same-step", target: 2.5, min: 0.01, max: 100 });
  const logitBias = [[7, -Infinity], [8, 3]] as const;
  const { events, end } = await run(engine, {
    ...asked,
    sampling: { ...asked.sampling, logitBias },
  });
  const tokens = events.filter((event): event is TokenEvent => event.type === "token");
  for (const [i, { temperature }] of tokens.entries()) {
    const row = rows[i]!;
    row[7] = -Infinity;
    row[8]! += 3;
    assertAlmostEquals(uncertainty(row.map((z) => z / temperature)).entropy, 2.5, 1e-3);
  }
  assertEquals([end.temperature?.law, end.temperature?.steps], ["same-step", 60]);
  assertAlmostEquals(end.temperature?.meanEntropy ?? 0, 2.5, 1e-3);
});

Deno.test("LocalEngine steers a sequence alike alone and among others, preempted or not", async () => {
  for (const law of TEMPERATURE_LAWS) {
    const control = { law, target: 2 };
    const alone = await run(new LocalEngine(new ScriptedBackend()), steered(control));
    const scarce = new LocalEngine(new ScriptedBackend({ limits: { kvBlocks: 12 } }));
    const [among] = await Promise.all([
      run(scarce, steered(control)),
      ...[6n, 7n, 8n].map((seed) => run(scarce, steered(control, seed))),
    ]);
    assertEquals(among?.tokens, alone.tokens, law);
    assertEquals(among?.end.temperature, alone.end.temperature, law);
    assert((await scarce.stats()).preemptions > 0);
  }
});

Deno.test("LocalEngine reports the request's temperature where nothing steers it", async () => {
  const engine = new LocalEngine(new ScriptedBackend());
  for (const temperature of [0, 0.7]) {
    const { events, end } = await run(engine, request(promptOf(9), { temperature }));
    assertEquals(end.temperature, undefined);
    for (const event of events) {
      if (event.type === "token") assertEquals(event.temperature, temperature);
    }
  }
});

Deno.test("LocalEngine refuses controls that make no sense, and says what is allowed", async () => {
  const engine = new LocalEngine(new ScriptedBackend());
  const bad = [
    [{ law: "magic" as "seed" }, "seed-leaky"],
    [{ law: "seed", target: NaN }, "finite number >= 0"],
    [{ law: "seed", eta: 0 }, "> 0"],
    [{ law: "seed-leaky", leak: 2 }, "(0, 1]"],
    [{ law: "stabilized", kappa: 1 }, "(0, 1)"],
    [{ law: "seed", min: 0 }, "[0.01, 100]"],
    [{ law: "seed", min: 5 }, "up to max, 2"],
  ] as const;
  for (const [control, allowed] of bad) {
    const error = await assertRejects(() => engine.submit(steered(control)), RequestError);
    assert(error.message.includes(allowed), error.message);
  }
});
