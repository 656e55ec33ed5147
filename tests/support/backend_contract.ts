/**
 * What every backend owes the engine, as checks on a tiny model: the same bits however tokens come,
 * blocks that can be moved, rows that can be asked and drawn from, refusals that leave it intact.
 *
 * Each takes a backend with at least 64 KV blocks that nobody else uses meanwhile.
 */
import { assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import type { Backend } from "../../core/engine/backend.ts";
import { uncertainty } from "../../core/entropic/entropy.ts";
import { blocks, part, prefill, rowsOf, text } from "./backend_steps.ts";

export type BackendCheck = (backend: Backend) => Promise<void>;

export const chunksNeverChangeABit =
  (chunks: readonly number[] = [1, 2, 3, 5, 16, 31]): BackendCheck => async (backend) => {
    const prompt = text(77);
    const whole = await prefill(backend, prompt, blocks(5), 77);
    for (const chunk of chunks) {
      assertEquals(await prefill(backend, prompt, blocks(5, 10), chunk), whole, `chunk ${chunk}`);
    }
  };

export const neighboursNeverChangeABit: BackendCheck = async (backend) => {
  const prompts = [5, 33, 1, 48, 17, 20].map((length, i) => text(length, i + 2));
  const alone = [];
  for (const prompt of prompts) alone.push(await prefill(backend, prompt, blocks(4), 64));
  const together = await backend.forward(
    prompts.map((prompt, i) => part(prompt, 0, blocks(4, 8 + 4 * i))),
  );
  assertEquals(await rowsOf(backend, together), alone);
};

const rowsEqualShorterPrompts: BackendCheck = async (backend) => {
  const prompt = text(20);
  const all = await rowsOf(backend, await backend.forward([part(prompt, 0, blocks(2), "all")]));
  for (const length of [1, 2, 16, 17, 20]) {
    const last = await prefill(backend, prompt.slice(0, length), blocks(2, 4), 64);
    assertEquals(all[length - 1], last, `length ${length}`);
  }
};

const laterTokensLeaveResultsAlone: BackendCheck = async (backend) => {
  const first = await prefill(backend, text(5), blocks(1), 5);
  // The rest of the block is now full of another sequence's keys and values.
  await prefill(backend, text(16, 9), blocks(1), 16);
  assertEquals(await prefill(backend, text(5), blocks(1), 5), first);
};

const blocksMayLieAnywhere: BackendCheck = async (backend) => {
  const expected = await prefill(backend, text(60), blocks(4), 60);
  assertEquals(await prefill(backend, text(60), [63, 0, 17, 5], 7), expected);
};

const blocksAreCopiedInOrder: BackendCheck = async (backend) => {
  const tokens = text(40), next = part(tokens.slice(33), 33, blocks(3));
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  const expected = await rowsOf(backend, await backend.forward([next]));
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  await backend.copyBlocks([[0, 10], [1, 11], [2, 12], [12, 20]]);
  await prefill(backend, text(48, 5), blocks(3), 64);
  const moved = { ...next, blockTable: [10, 11, 20] };
  assertEquals(await rowsOf(backend, await backend.forward([moved])), expected);
};

const blocksAreReadAndWritten: BackendCheck = async (backend) => {
  const tokens = text(40), next = part(tokens.slice(33), 33, blocks(3));
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  const content = await backend.readBlocks([2, 0, 1]);
  const expected = await rowsOf(backend, await backend.forward([next]));
  await prefill(backend, text(48, 5), blocks(3), 64);
  await backend.writeBlocks([42, 40, 41], content);
  const moved = { ...next, blockTable: [40, 41, 42] };
  assertEquals(await rowsOf(backend, await backend.forward([moved])), expected);
  await assertRejects(
    () => backend.writeBlocks([1, 2], content),
    RangeError,
    `content has ${content.length} bytes, expected are ${content.length / 3 * 2}`,
  );
};

const denseAttentionIsCounted: BackendCheck = async (backend) => {
  const { attention } = await backend.forward([
    part(text(20), 0, blocks(2), "none"),
    part(text(1), 0, blocks(1, 2), "last"),
  ]);
  // 16 tokens read one block and 4 read two; the tiny model has 2 layers and 2 KV heads, and its
  // last layer attends for output rows only.
  assertEquals(attention.map(({ blocksRead }) => blocksRead), [2 * 24, 2 * 2]);
  const bytes = backend.describe().kvBytes / backend.limits.kvBlocks / 4;
  assertEquals(attention.map(({ bytesRead }) => bytesRead), [48 * bytes, 4 * bytes]);
};

const uncertaintyIsToldAtAnyTemperature: BackendCheck = async (backend) => {
  const { rows: [stats] } = await backend.forward([part(text(9), 0, blocks(1))]);
  const { entropy, varentropy } = await backend.tempered(0, 1);
  assertAlmostEquals(entropy, stats!.entropy, 1e-6);
  assertAlmostEquals(varentropy, stats!.varentropy, 1e-5);
  const logits = Float64Array.from(await backend.logits(0));
  for (const temperature of [0.01, 0.3, 2, 50]) {
    const exact = uncertainty(logits.map((logit) => logit / temperature));
    const found = await backend.tempered(0, temperature);
    assertAlmostEquals(found.entropy, exact.entropy, 1e-5, `H at ${temperature}`);
    assertAlmostEquals(found.varentropy, exact.varentropy, 1e-4, `V at ${temperature}`);
  }
  await assertRejects(() => backend.tempered(0, 0), RangeError, "temperature is 0");
  await assertRejects(() => backend.tempered(1, 1), RangeError, "row is 1");
};

const singleLogitsAreTold: BackendCheck = async (backend) => {
  await backend.forward([part(text(9), 0, blocks(1))]);
  const logits = await backend.logits(0);
  const few = Uint32Array.of(7, 0, 199), many = Uint32Array.from({ length: 100 }, (_, i) => 2 * i);
  for (const ids of [few, many, Uint32Array.from(logits.keys())]) {
    assertEquals(await backend.logitsOf(0, ids), Float32Array.from(ids, (id) => logits[id]!));
  }
  await assertRejects(() => backend.logitsOf(0, [-1]), RangeError, "token id is -1");
  await assertRejects(
    () => backend.logitsOf(1, few),
    RangeError,
    "row is 1, the latest step has 1",
  );
};

const tokensAreDrawn: BackendCheck = async (backend) => {
  const { rows: [stats] } = await backend.forward([part(text(9), 0, blocks(1))]);
  const logits = await backend.logits(0);
  const plain = { topK: 0, topP: 1, minP: 0, u: 0.5 };
  const none = { ids: new Uint32Array(), logits: new Float32Array() };
  const [best, second] = stats!.topIds;
  const greedy = { ...plain, overrides: none, temperature: 0 };
  assertEquals(await backend.draw(0, greedy), best);
  const overrides = { ids: Uint32Array.of(best!), logits: Float32Array.of(-Infinity) };
  assertEquals(await backend.draw(0, { ...greedy, overrides }), second);
  assertEquals(await backend.draw(0, { ...plain, overrides, topK: 1, temperature: 1 }), second);
  const raised = { ids: Uint32Array.of(7, 3), logits: Float32Array.of(98, 99) };
  assertEquals(await backend.draw(0, { ...greedy, overrides: raised }), 3);
  const all = Uint32Array.from(logits.keys());
  const banned = { ids: all, logits: new Float32Array(all.length).fill(-Infinity) };
  assertEquals(await backend.draw(0, { ...greedy, overrides: banned }), undefined);
  assertEquals(await backend.logits(0), logits, "drawing leaves the row alone");
  const outside = { ids: Uint32Array.of(1e6), logits: Float32Array.of(0) };
  const draw = { ...greedy, overrides: outside };
  await assertRejects(() => backend.draw(0, draw), RangeError, "token id is 1000000");
  await assertRejects(() => backend.draw(1, greedy), RangeError, "row is 1");
};

/** By what they show. */
export const BACKEND_CHECKS: Readonly<Record<string, BackendCheck>> = {
  "chunks of a prompt never change a bit": chunksNeverChangeABit(),
  "neighbours never change a bit": neighboursNeverChangeABit,
  "all rows equal the last rows of shorter prompts": rowsEqualShorterPrompts,
  "later tokens in a block leave earlier results alone": laterTokensLeaveResultsAlone,
  "blocks are read wherever the block table puts them": blocksMayLieAnywhere,
  "blocks are copied in order, so that a sequence goes on in the copy": blocksAreCopiedInOrder,
  "writeBlocks puts back what readBlocks gave": blocksAreReadAndWritten,
  "what dense attention reads is counted": denseAttentionIsCounted,
  "a row's uncertainty is told at any temperature": uncertaintyIsToldAtAnyTemperature,
  "single logits are told": singleLogitsAreTold,
  "tokens are drawn from a row with overrides": tokensAreDrawn,
};
