/** The `entropic` object: what requests may choose, what is refused, and what answers tell. */
import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { TEMPERATURE_LAWS } from "../../core/entropic/temperature.ts";
import { entropic } from "../../core/server/app.ts";
import { ByteTokenizer, chatml, END, VOCABULARY } from "../support/byte_tokenizer.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { ScriptedBackend } from "../support/scripted_backend.ts";
import {
  CHAT,
  chat,
  complete,
  COMPLETIONS,
  expectError,
  type Json,
  MESSAGES,
  post,
  stream,
} from "./requests.ts";

/** The server on the real engine, over a backend whose distributions have 1 to 5 nats. */
function open() {
  const backend = new ScriptedBackend({
    vocabularySize: VOCABULARY,
    endTokens: [END],
    limits: { kvBlocks: 256, contextLength: 1024, topK: 32 },
  });
  const engine = new LocalEngine(backend);
  const tokenizer = new ByteTokenizer();
  return entropic({ id: "local", created: 0, engine, tokenizer, template: chatml });
}

const under = (law: string, more: object = {}) => ({
  max_tokens: 60,
  ignore_eos: true,
  seed: 7,
  entropic: { temperature: { law, ...more } },
});

Deno.test("entropic.temperature names a law, tunes it, and null is the default", async () => {
  const model = fakeModel();
  const app = entropic(model);
  await chat(app, under("stabilized", { target: 1.5, eta: null, max: 3 }));
  await chat(app, under("off", { target: 2 }));
  await chat(app, { entropic: null });
  const asked = model.engine.requests.map(({ sampling }) => sampling.temperatureControl);
  assertEquals(asked, [{ law: "stabilized", target: 1.5, max: 3 }, undefined, undefined]);
});

Deno.test("without a law an answer says nothing of one, and the temperature is the request's", async () => {
  const app = open();
  const plain = await chat(app, { max_tokens: 20, ignore_eos: true, seed: 7, temperature: 1.3 });
  assertEquals(plain.entropic.temperature, undefined);
  const off = await chat(app, { ...under("off"), max_tokens: 20, temperature: 1.3 });
  assertEquals(off.choices, plain.choices);
});

Deno.test("a law is summed up in the answer, whole and streamed alike", async () => {
  const app = open();
  for (const law of TEMPERATURE_LAWS) {
    const fields = under(law, { target: 2, min: 0.2, max: 5 });
    const { entropic: whole } = await chat(app, fields);
    assertEquals(whole.temperature.law, law);
    assert(whole.temperature.mean > 0.199 && whole.temperature.mean < 5.001);
    const chunks = await stream(app, CHAT, { messages: MESSAGES, ...fields });
    assertEquals(chunks.at(-1).entropic.temperature, whole.temperature);
  }
});

Deno.test("same-step holds the target, over all choices", async () => {
  const answer = await complete(open(), {
    ...under("same-step", { target: 3, min: 0.01, max: 100 }),
    n: 3,
  });
  const { temperature } = answer.entropic;
  assertAlmostEquals(temperature.mean_entropy, 3, 1e-3);
  assertAlmostEquals(temperature.entropy_deviation, 0, 1e-2);
  assertEquals(temperature.rail_share, 0);
});

Deno.test("entropic_trace lists each token's entropy and temperature, whole and streamed", async () => {
  const app = open();
  const fields = {
    ...under("stabilized", { target: 1 }),
    entropic: { temperature: { law: "stabilized" }, trace: true },
  };
  for (const [path, base] of [[CHAT, { messages: MESSAGES }], [COMPLETIONS, { prompt: "Hi" }]]) {
    const whole = await (await post(app, path as string, { ...base as object, ...fields })).json();
    const trace = whole.choices[0].entropic_trace;
    assertEquals(trace.length, 60);
    const mean = trace.reduce((sum: number, { entropy }: Json) => sum + entropy, 0) / 60;
    assertAlmostEquals(mean, whole.entropic.mean_entropy, 1e-9);
    assert(new Set(trace.map(({ temperature }: Json) => temperature)).size > 10);
    const chunks = await stream(app, path as string, { ...base as object, ...fields });
    assertEquals(
      chunks.flatMap(({ choices }) => choices.flatMap((one: Json) => one.entropic_trace ?? [])),
      trace,
    );
  }
  const without = await chat(app, under("stabilized"));
  assertEquals(without.choices[0].entropic_trace, undefined);
});

Deno.test("an answer tells what it cost, and dtau/dC by named units", async () => {
  const { entropic: told } = await chat(open(), { max_tokens: 30, ignore_eos: true, seed: 1 });
  const { tau, cost, dtau_dc } = told;
  assert(cost.flops > 0 && cost.kv_bytes > 0 && cost.seconds > 0);
  assertAlmostEquals(dtau_dc.nats_per_second, tau / cost.seconds, 1e-9 * dtau_dc.nats_per_second);
  assertAlmostEquals(dtau_dc.nats_per_gflop, 1e9 * tau / cost.flops, 1e-6 * dtau_dc.nats_per_gflop);
});

Deno.test("costs of answers that ran together add up to the engine's", async () => {
  const app = open();
  const answers = await Promise.all(
    [10, 25, 40].map((max_tokens) =>
      complete(app, { prompt: "x".repeat(max_tokens), max_tokens, ignore_eos: true, seed: 3 })
    ),
  );
  const page = await (await app.request("/metrics")).text();
  const total = Number(/^entropic_flops_total (\S+)$/m.exec(page)?.[1]);
  const sum = answers.reduce((flops, answer) => flops + answer.entropic.cost.flops, 0);
  assertAlmostEquals(sum, total, 1e-9 * total);
});

const BAD: readonly (readonly [json: string, param: string, ...says: string[]])[] = [
  ["5", "entropic", "an object", "attention, latency_target, temperature, trace"],
  ["[]", "entropic", "an object"],
  ['{"scheduler":"fcfs"}', "entropic.scheduler", "attention, latency_target, temperature, trace"],
  ['{"trace":1}', "entropic.trace", "true or false"],
  ['{"temperature":"seed"}', "entropic.temperature", "law, target, eta"],
  ['{"temperature":{}}', "entropic.temperature.law", "stabilized"],
  ['{"temperature":{"law":"magic"}}', "entropic.temperature.law", '"magic"', "seed-leaky"],
  ['{"temperature":{"law":"seed","gain":1}}', "entropic.temperature.gain", "law, target, eta"],
  ['{"temperature":{"law":"seed","target":-1}}', "entropic.temperature.target", "from 0 to 20"],
  ['{"temperature":{"law":"seed","target":1e999}}', "entropic.temperature.target"],
  ['{"temperature":{"law":"seed","target":"NaN"}}', "entropic.temperature.target"],
  ['{"temperature":{"law":"seed","eta":0}}', "entropic.temperature.eta", "above 0"],
  ['{"temperature":{"law":"seed","leak":1.5}}', "entropic.temperature.leak", "at most 1"],
  ['{"temperature":{"law":"seed","kappa":1}}', "entropic.temperature.kappa"],
  ['{"temperature":{"law":"seed","min":0}}', "entropic.temperature.min", "0.01"],
  ['{"temperature":{"law":"seed","max":1e3}}', "entropic.temperature.max", "100"],
];

Deno.test("bad values in entropic are 400, naming field, value and what is allowed", async (t) => {
  for (const [json, param, ...says] of BAD) {
    await t.step(json, async () => {
      for (const stream of [false, true]) {
        const body = `{"messages":${
          JSON.stringify(MESSAGES)
        },"stream":${stream},"entropic":${json}}`;
        const app = entropic(fakeModel());
        await expectError(app, await post(app, CHAT, body), { status: 400, param, says });
      }
    });
  }
});

Deno.test("a law that cannot run is 400 before the stream begins", async () => {
  const app = open();
  const refused = async (fields: object, param: string, ...says: string[]) => {
    const body = { messages: MESSAGES, stream: true, max_tokens: 4, ...fields };
    const response = await post(app, CHAT, body);
    await expectError(app, response, { status: 400, param, says });
  };
  await refused({ ...under("seed"), temperature: 0 }, "temperature", "above 0");
  await refused(under("seed", { min: 3 }), "entropic.temperature.min", "3", "max, 2");
});
