/** `entropic.attention` and `entropic.latency_target`: what is asked, refused, done and told. */
import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import type { AttentionSettings } from "../../core/engine/attention/attention_settings.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { entropic } from "../../core/server/app.ts";
import { ByteTokenizer, chatml, END, VOCABULARY } from "../support/byte_tokenizer.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { ScriptedBackend, type ScriptedOptions } from "../support/scripted_backend.ts";
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

/** The server on the real engine, over a backend that can prune from 100 tokens on. */
function open(attention: AttentionSettings = {}, scripted: ScriptedOptions = {}, entropyFloor = 0) {
  const backend = new ScriptedBackend({
    vocabularySize: VOCABULARY,
    endTokens: [END],
    limits: { kvBlocks: 256, contextLength: 1024, topK: 32 },
    prunes: true,
    ...scripted,
  });
  const settings = { denseBelow: 100, minBlocks: 4, ...attention };
  const engine = new LocalEngine(backend, { attention: settings, entropyFloor });
  const tokenizer = new ByteTokenizer();
  return entropic({ id: "local", created: 0, engine, tokenizer, template: chatml });
}

const PROMPT = "x".repeat(200);
const asking = (attention: object, more: object = {}) => ({
  prompt: PROMPT,
  max_tokens: 40,
  ignore_eos: true,
  seed: 7,
  entropic: { attention, ...more },
});

Deno.test("entropic.attention and latency_target reach the engine, and null is the default", async () => {
  const model = fakeModel();
  const app = entropic(model);
  const attention = { policy: "mass", mass: 0.9, min_blocks: 12, gain: null, threshold: null };
  await chat(app, { entropic: { attention, latency_target: 2.5 } });
  await chat(app, { entropic: { attention: { policy: "paper", threshold: 0.01, min_blocks: 8 } } });
  await chat(app, { entropic: { attention: null, latency_target: null } });
  await chat(app);
  const asked = model.engine.requests.map(({ attention, latencyTarget }) => ({
    attention,
    latencyTarget,
  }));
  const nothing = { attention: undefined, latencyTarget: undefined };
  assertEquals(asked, [
    { attention: { policy: "mass", mass: 0.9, minBlocks: 12 }, latencyTarget: 2500 },
    { attention: { policy: "paper", threshold: 0.01, minBlocks: 8 }, latencyTarget: undefined },
    nothing,
    nothing,
  ]);
});

Deno.test("an answer tells what its attention read, whole and streamed alike", async () => {
  const app = open();
  const fields = asking({ policy: "mass", mass: 0.8 }, { trace: true });
  const { choices, entropic: whole } = await complete(app, fields);
  const { attention } = whole;
  assertEquals([attention.policy, attention.steps, attention.pruned_steps], ["mass", 39, 39]);
  assert(attention.blocks_read < attention.blocks_total);
  assert(attention.share_read > attention.blocks_read / attention.blocks_total, "the scan counts");
  assert(attention.share_read < 1 && attention.share_macs < 1);
  assertAlmostEquals(attention.mass_dropped, 0.1, 1e-12);
  const [first, ...others] = choices[0].entropic_trace.map((one: Json) => one.attention);
  assertEquals(first, { share_read: 1 });
  assert(others.every((one: Json) => one.mass === 0.8 && one.share_read < 1));
  const chunks = await stream(app, COMPLETIONS, fields);
  assertEquals(chunks.at(-1).entropic.attention, attention);
});

Deno.test("an answer sums its choices' attention up", async () => {
  const app = open();
  const one = (await complete(app, asking({ policy: "mass", mass: 0.8 }))).entropic.attention;
  const three = await complete(app, { ...asking({ policy: "mass", mass: 0.8 }), n: 3 });
  const { attention } = three.entropic;
  assertEquals(attention.blocks_total, 3 * one.blocks_total);
  assertAlmostEquals(attention.share_read, one.share_read, 1e-12);
});

Deno.test("dense answers say nothing of attention, and are those of a server that cannot prune", async () => {
  const plain = await complete(open({}, { prunes: false }), { ...asking({ policy: "off" }) });
  const dense = await complete(open(), asking({ policy: "off" }, { trace: true }));
  assertEquals(dense.entropic.attention, undefined);
  assertEquals(dense.choices[0].entropic_trace[5].attention, undefined);
  assertEquals(dense.choices[0].text, plain.choices[0].text);
});

Deno.test("the server's policy is for requests that name none", async () => {
  const app = open({ policy: "mass", mass: 0.8 });
  const { entropic: told } = await complete(app, { prompt: PROMPT, max_tokens: 9, seed: 1 });
  assertEquals(told.attention.policy, "mass");
  const off = await complete(app, asking({ policy: "off" }));
  assertEquals(off.entropic.attention, undefined);
});

Deno.test("a fixed mass gives the same text again, whatever the controller does", async () => {
  const prune = (logits: Float32Array) => void (logits[5]! += 9);
  const app = open({ shadowEvery: 1 }, { prune });
  const fields = asking({ policy: "mass", mass: 0.8 });
  const before = await complete(app, fields);
  await complete(app, asking({ policy: "mass" }));
  assertEquals((await complete(app, fields)).choices, before.choices);
});

Deno.test("an answer tells the entropy floor that its tau was counted under, where there is one", async () => {
  const fields = { prompt: PROMPT, max_tokens: 9, seed: 1 };
  const floored = open({}, {}, 0.5);
  assertEquals((await complete(floored, fields)).entropic.entropy_floor, 0.5);
  const chunks = await stream(floored, COMPLETIONS, fields);
  assertEquals(chunks.at(-1).entropic.entropy_floor, 0.5);
  assertEquals("entropy_floor" in (await complete(open(), fields)).entropic, false);
});

Deno.test("/health and /metrics tell how attention and its safeguards stand", async () => {
  const app = open({ policy: "mass", mass: 0.8, shadowEvery: 4, leastMass: 0.6, divergence: 0.05 });
  await complete(app, { prompt: PROMPT, max_tokens: 41, ignore_eos: true, seed: 1 });
  const { attention, entropy_floor } = await (await app.request("/health")).json();
  const { divergence, held, ...rest } = attention;
  assertEquals(rest, {
    policy: "mass",
    allowed: ["off", "mass", "paper"],
    least_mass: 0.6,
    least_blocks: 4,
    dense_below: 100,
    divergence_bound: 0.05,
    shadows: 10,
  });
  assert(divergence > 0);
  assertEquals(held.map((one: Json) => one.from), [1024, 2048, 4096, 8192]);
  assertEquals(entropy_floor, 0);
  const page = await (await app.request("/metrics")).text();
  const value = (series: string) => {
    const line = page.split("\n").find((line) => line.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1));
  };
  assertEquals(value("entropic_attention_pruned_steps_total"), 40);
  assertEquals(value("entropic_attention_shadows_total"), 10);
  assertEquals(value('entropic_attention_policy_info{policy="mass"}'), 1);
  assertEquals(value("entropic_attention_divergence_bound_nats"), 0.05);
  assertAlmostEquals(value("entropic_attention_divergence_nats"), divergence, 1e-9);
  for (const unit of ["blocks", "bytes", "macs"]) {
    const spent = value(`entropic_attention_${unit}_total{of="spent"}`);
    assert(spent > 0 && spent < value(`entropic_attention_${unit}_total{of="dense"}`), unit);
  }
});

Deno.test("a policy that failed its bound is off in answers, and /health says why", async () => {
  const prune = (logits: Float32Array) => void logits.reverse();
  const app = open({ policy: "mass", shadowEvery: 1 }, { prune });
  const { entropic: told } = await complete(app, {
    prompt: PROMPT,
    max_tokens: 40,
    ignore_eos: true,
    seed: 1,
  });
  assertEquals(told.attention.policy, "off");
  assert(told.attention.pruned_steps < told.attention.steps);
  const { attention } = await (await app.request("/health")).json();
  assertEquals(attention.policy, "off");
  assert(attention.reason.includes("diverged from dense attention"), attention.reason);
});

Deno.test("a server that cannot prune says why, and refuses to", async () => {
  const app = open({ policy: "mass" }, { prunes: false });
  const { attention } = await (await app.request("/health")).json();
  assertEquals([attention.policy, attention.allowed], ["off", ["off"]]);
  assert(attention.reason.includes("no sketch"), attention.reason);
  const plain = await complete(app, { prompt: PROMPT, max_tokens: 4 });
  assertEquals(plain.entropic.attention, undefined);
  for (const policy of ["mass", "paper"]) {
    const body = { messages: MESSAGES, stream: true, entropic: { attention: { policy } } };
    const says = [policy, "allowed: off here", "no sketch"];
    const param = "entropic.attention.policy";
    await expectError(app, await post(app, CHAT, body), { status: 400, param, says });
  }
});

const BAD: readonly (readonly [json: string, param: string, ...says: string[]])[] = [
  ['{"attention":"mass"}', "entropic.attention", "policy, mass, min_blocks, gain, threshold"],
  ['{"attention":{}}', "entropic.attention.policy", "off, mass, paper"],
  ['{"attention":{"policy":"quest"}}', "entropic.attention.policy", '"quest"', "off, mass, paper"],
  [
    '{"attention":{"policy":"mass","masses":1}}',
    "entropic.attention.masses",
    "no such field",
    "policy, mass, min_blocks, gain, threshold",
  ],
  ['{"attention":{"policy":"mass","mass":0}}', "entropic.attention.mass", "above 0"],
  ['{"attention":{"policy":"mass","mass":1.01}}', "entropic.attention.mass", "at most 1"],
  ['{"attention":{"policy":"mass","mass":"NaN"}}', "entropic.attention.mass", '"NaN"'],
  ['{"attention":{"policy":"mass","mass":1e999}}', "entropic.attention.mass"],
  ['{"attention":{"policy":"mass","min_blocks":0}}', "entropic.attention.min_blocks", "from 1 to"],
  [
    '{"attention":{"policy":"mass","min_blocks":16777217}}',
    "entropic.attention.min_blocks",
    "from 1 to 16777216",
  ],
  ['{"attention":{"policy":"mass","min_blocks":8.5}}', "entropic.attention.min_blocks", "integer"],
  ['{"attention":{"policy":"mass","gain":-1.5}}', "entropic.attention.gain", "from -1 to 1"],
  ['{"attention":{"policy":"paper","threshold":2}}', "entropic.attention.threshold", "from 0 to 1"],
  ['{"attention":{"policy":"paper","mass":0.9}}', "entropic.attention.mass", "0.9", "is mass"],
  ['{"attention":{"policy":"paper","gain":0.1}}', "entropic.attention.gain", "0.1", "is mass"],
  ['{"attention":{"policy":"mass","threshold":0}}', "entropic.attention.threshold", "is paper"],
  [
    '{"attention":{"policy":"off","min_blocks":9}}',
    "entropic.attention.min_blocks",
    "null unless policy is mass or paper",
  ],
  ['{"latency_target":0}', "entropic.latency_target", "above 0"],
  ['{"latency_target":-1}', "entropic.latency_target", "seconds"],
  ['{"latency_target":1e999}', "entropic.latency_target"],
  ['{"latency_target":"2s"}', "entropic.latency_target"],
];

Deno.test("bad values are 400, naming field, value and what is allowed", async (t) => {
  for (const [json, param, ...says] of BAD) {
    await t.step(json, async () => {
      for (const stream of [false, true]) {
        const head = JSON.stringify({ messages: MESSAGES, stream }).slice(0, -1);
        const app = entropic(fakeModel());
        const response = await post(app, CHAT, `${head},"entropic":${json}}`);
        await expectError(app, response, { status: 400, param, says });
      }
    });
  }
});

Deno.test("an unknown field's name is told, up to a sensible length", async () => {
  const app = entropic(fakeModel());
  const body = { messages: MESSAGES, entropic: { [`trace${"x".repeat(1e5)}`]: true } };
  const { error } = await expectError(app, await post(app, CHAT, body), { status: 400 });
  assert(error.param.startsWith("entropic.tracex") && error.param.length < 100);
  assert(error.message.length < 250, error.message);
});

Deno.test("values below the server's floors are 400 and name the floor", async () => {
  const app = open({ leastMass: 0.7, leastBlocks: 8, minBlocks: 8 });
  const refused = async (fields: object, param: string, ...says: string[]) => {
    const body = { messages: MESSAGES, entropic: { attention: { policy: "mass", ...fields } } };
    await expectError(app, await post(app, CHAT, body), { status: 400, param, says });
  };
  await refused({ mass: 0.69 }, "entropic.attention.mass", "0.69", "[0.7, 1]");
  await refused({ min_blocks: 7 }, "entropic.attention.min_blocks", "7", ">= 8");
});
