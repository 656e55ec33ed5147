import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { jsonErrorPosition } from "./json_position.ts";

Deno.test("jsonErrorPosition names the first character that is wrong", () => {
  const cases: readonly [text: string, position: number][] = [
    ["", 0],
    ["  ", 2],
    ['{"a":}', 5],
    ['{"a" 1}', 5],
    ['{"a":1,}', 7],
    ["[1,]", 3],
    ["[1 2]", 3],
    ["[1}", 2],
    ["}", 0],
    ["{1:2}", 1],
    ['"open', 5],
    ['"a\nb"', 2],
    ['"\\x"', 1],
    ["NaN", 0],
    ["-", 0],
    ["01", 1],
    ["1 1", 2],
    ['{"a":1', 6],
    ['{"messages": [}', 14],
  ];
  for (const [text, position] of cases) assertEquals(jsonErrorPosition(text), position, text);
});

Deno.test("jsonErrorPosition finds nothing wrong with JSON", () => {
  fc.assert(fc.property(fc.json(), (text) => jsonErrorPosition(text) === undefined));
  assertEquals(
    jsonErrorPosition(' {"a": [1, -0.5e+3, "\\u00e9\\n", true, null, {}, []]} '),
    undefined,
  );
});

Deno.test("jsonErrorPosition finds a fault whenever JSON.parse does", () => {
  const mutated = fc.tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", "}", "]", '"', "x", "\\"))
    .map(([text, at, insert]) => {
      const index = at % (text.length + 1);
      return text.slice(0, index) + insert + text.slice(index + 1);
    });
  fc.assert(
    fc.property(mutated, (text) => {
      const position = jsonErrorPosition(text);
      assertEquals(position !== undefined, throws(text), text);
      if (position !== undefined) assert(position <= text.length);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("jsonErrorPosition copes with a long string and with deep nesting", () => {
  const text = "[".repeat(100_000) + JSON.stringify("a\\".repeat(1_000_000));
  assertEquals(jsonErrorPosition(text), text.length);
});

function throws(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}
