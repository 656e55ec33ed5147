import { assertEquals, assertThrows } from "@std/assert";
import { summarise } from "./statistics.ts";

Deno.test("summarise gives the median and the spread relative to it", () => {
  assertEquals(summarise([5, 1, 4]), { median: 4, spread: 1 });
  assertEquals(summarise([4, 1, 3, 2]), { median: 2.5, spread: 3 / 2.5 });
  assertEquals(summarise([7]), { median: 7, spread: 0 });
});

Deno.test("summarise refuses an empty list", () => {
  assertThrows(() => summarise([]), RangeError, "no values");
});
