import {
  assert,
  assertAlmostEquals,
  assertArrayIncludes,
  assertEquals,
  AssertionError,
  assertNotEquals,
  assertObjectMatch,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
  equal,
} from "@std/assert";

Deno.test("equal compares values deeply and by type", () => {
  const equalPairs: [unknown, unknown][] = [
    [NaN, NaN],
    [0, -0],
    [{ a: [1, { b: 2n }] }, { a: [1, { b: 2n }] }],
    [new Map([[{ k: 1 }, [2]]]), new Map([[{ k: 1 }, [2]]])],
    [new Set([[1], [2]]), new Set([[2], [1]])],
    [new Float32Array([1, NaN, 0]), new Float32Array([1, NaN, -0])],
    [new BigUint64Array([1n]), new BigUint64Array([1n])],
    [new Date(3), new Date(3)],
    [new RangeError("x"), new RangeError("x")],
    [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ];
  for (const [a, b] of equalPairs) assertEquals(a, b);
  const unequalPairs: [unknown, unknown][] = [
    [{ a: undefined }, {}],
    [[1, 2], [1, 2, 3]],
    [[undefined], [null]],
    [new Uint8Array([1]), new Int8Array([1])],
    [new Uint8Array([1, 2]), new Uint8Array([1, 3])],
    [new Uint8Array([1]).buffer, new Uint8Array([2]).buffer],
    [new Set([1, 2]), new Set([1, 3])],
    [new Map([[1, 2]]), new Map([[1, 3]])],
    [new RangeError("x"), new TypeError("x")],
    [new Error("x"), new Error("y")],
    [new Date(3), new Date(4)],
    [/a/g, /a/i],
    [1, 1n],
    [1, "1"],
    [[], {}],
  ];
  for (const [a, b] of unequalPairs) assertNotEquals(a, b);
});

Deno.test("equal ends on cycles", () => {
  const loop = (end: number) => {
    const node: Record<string, unknown> = { end };
    node.self = node;
    return node;
  };
  assert(equal(loop(1), loop(1)));
  assert(!equal(loop(1), loop(2)));
});

Deno.test("assertEquals shows the lines that differ", () => {
  const rows = (at: number) =>
    Array.from({ length: 40 }, (_, i) => i === at ? "other" : `row ${i}`);
  const { message } = assertThrows(() => assertEquals(rows(20), rows(-1)), AssertionError);
  assertStringIncludes(message, "+     'other'");
  assertStringIncludes(message, "-     'row 20'");
  assertEquals(message.includes("row 2'"), false);
});

Deno.test("assertThrows and assertRejects check class and message", async () => {
  const boom = () => {
    throw new RangeError("Cannot boom");
  };
  assertStrictEquals(assertThrows(boom, RangeError, "boom").message, "Cannot boom");
  assertThrows(() => assertThrows(boom, TypeError), AssertionError, "TypeError");
  assertThrows(() => assertThrows(boom, RangeError, "bang"), AssertionError, "bang");
  assertThrows(() => assertThrows(() => 1), AssertionError, "Expected function to throw");
  await assertRejects(() => Promise.reject(new RangeError("later")), RangeError, "later");
  await assertRejects(
    () => assertRejects(() => Promise.resolve(1)),
    AssertionError,
    "Expected function to reject",
  );
  await assertRejects(() => assertRejects(boom), AssertionError, "throws when expected to reject");
});

Deno.test("assertAlmostEquals takes its tolerance from the expected value", () => {
  assertAlmostEquals(1e9 + 1, 1e9);
  assertThrows(() => assertAlmostEquals(1.001, 1), AssertionError, "greater than 1e-7");
  assertThrows(() => assertAlmostEquals(NaN, 1), AssertionError);
  assertAlmostEquals(1.001, 1, 0.01);
});

Deno.test("assertObjectMatch and assertArrayIncludes look at what is named only", () => {
  assertObjectMatch({ a: 1, b: { c: [1, { d: 2, e: 3 }] } }, { b: { c: [1, { d: 2 }] } });
  assertThrows(() => assertObjectMatch({ a: 1 }, { b: 1 }), AssertionError);
  assertArrayIncludes([{ a: 1 }, { b: 2 }], [{ b: 2 }]);
  assertThrows(() => assertArrayIncludes([1, 2], [3]), AssertionError, "missing");
});
