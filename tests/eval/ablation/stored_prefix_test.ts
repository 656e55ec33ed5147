import { assertEquals, assertRejects } from "@std/assert";
import { DENSE, type SequenceInput } from "../../../core/engine/backend.ts";
import { ScriptedBackend } from "../../support/scripted_backend.ts";
import { promptOf } from "../../support/engine_runs.ts";
import { storePrefix, withPrefix } from "./stored_prefix.ts";

/** A backend that counts its forwards. */
const counting = () => new ScriptedBackend({ onForward: () => {}, prunes: true });

const DOCUMENT = Uint32Array.from(promptOf(48));

const input = (fields: Partial<SequenceInput>): SequenceInput => ({
  tokens: DOCUMENT,
  position: 0,
  blockTable: [9, 4, 7, 2],
  attention: DENSE,
  output: "none",
  ...fields,
});

Deno.test("withPrefix gives what computing the prefix gives, without computing it", async () => {
  const real = counting();
  const stored = await storePrefix(real, DOCUMENT);
  const lent = withPrefix(real, stored);
  const before = real.forwards;
  await lent.forward([input({ tokens: DOCUMENT.subarray(0, 32) })]);
  await lent.forward([input({ tokens: DOCUMENT.subarray(32), position: 32 })]);
  assertEquals(real.forwards, before);
  const next = input({ tokens: [5], position: 48, output: "last" });
  const { rows } = await lent.forward([next]);
  const plain = new ScriptedBackend();
  await plain.forward([input({})]);
  assertEquals(rows, (await plain.forward([next])).rows);
});

Deno.test("withPrefix computes whatever is not the prefix, and wants rows", async () => {
  const real = counting();
  const lent = withPrefix(real, await storePrefix(real, DOCUMENT));
  const others = [
    input({ tokens: DOCUMENT.toReversed() }),
    input({ output: "last" }),
    input({ tokens: DOCUMENT.subarray(0, 40) }),
    input({ attention: { kind: "mass", mass: 0.9, minBlocks: 0 } }),
  ];
  for (const other of others) {
    const before = real.forwards;
    await lent.forward([other]);
    assertEquals(real.forwards, before + 1);
  }
});

Deno.test("withPrefix tells of each forward, and outlives the engine that borrows it", async () => {
  const real = counting();
  let steps = 0;
  const lent = withPrefix(real, await storePrefix(real, DOCUMENT), () => steps++);
  await lent.forward([input({})]);
  await lent.forward([input({ output: "last" })]);
  await lent.dispose();
  assertEquals([steps, real.disposed], [2, false]);
});

Deno.test("storePrefix takes whole blocks only", async () => {
  const part = DOCUMENT.subarray(0, 20);
  await assertRejects(
    () => storePrefix(new ScriptedBackend(), part),
    RangeError,
    "multiples of 16",
  );
});
