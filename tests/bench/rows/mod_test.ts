import { assertEquals, assertThrows } from "@std/assert";
import { DEFAULT_ROWS, findRows, ROWS } from "./mod.ts";

Deno.test("ROWS have names of their own, and default rows are among them", () => {
  const names = ROWS.map(({ name }) => name);
  assertEquals(new Set(names).size, names.length);
  assertEquals(findRows(DEFAULT_ROWS).map(({ name }) => name), [...DEFAULT_ROWS]);
});

Deno.test("findRows keeps the order given and knows all", () => {
  assertEquals(findRows(["prefill", "decode"]).map(({ name }) => name), ["prefill", "decode"]);
  assertEquals(findRows(["all"]), [...ROWS]);
  assertThrows(() => findRows(["decode-9t"]), RangeError, "current value is decode-9t");
});
