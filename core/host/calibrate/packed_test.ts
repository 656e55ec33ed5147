import { assert, assertEquals, assertThrows } from "@std/assert";
import { normals, randomNumbers } from "../../../tests/support/random.ts";
import { packFloats, packRows, unpackFloats, unpackRows } from "./packed.ts";

Deno.test("packRows keeps each element to a share of its row's largest", () => {
  const rows = normals(300 * 64, 1, randomNumbers(1));
  for (let i = 0; i < 64; i++) rows[i]! *= 1e6;
  rows.fill(0, 64, 128);
  const found = unpackRows(packRows(rows, 64), 300, 64);
  for (let row = 0; row < 300; row++) {
    const [from, to] = [rows.subarray(row * 64, row * 64 + 64), found.subarray(row * 64)];
    const most = Math.max(...from.map(Math.abs));
    assert(from.every((value, i) => Math.abs(value - to[i]!) <= most / 60_000));
  }
});

Deno.test("packFloats keeps every bit, of a part of an array too", () => {
  const values = normals(100, 3, randomNumbers(2));
  assertEquals(unpackFloats(packFloats(values), 100), values);
  assertEquals(unpackFloats(packFloats(values.subarray(7, 20)), 13), values.slice(7, 20));
});

Deno.test("unpackRows and unpackFloats refuse what was not packed so", () => {
  const packed = packRows(new Float32Array(8).fill(1), 4);
  assertThrows(() => unpackRows(packed, 2, 5), SyntaxError, "16 bytes, expected are 20");
  assertThrows(() => unpackRows({ ...packed, values: "###" }, 2, 4), SyntaxError, "no base64");
  const scales = packFloats(Float32Array.of(1, 3e38));
  assertThrows(() => unpackRows({ ...packed, scales }, 2, 4), SyntaxError, "finite");
  assertThrows(() => unpackFloats(packFloats(Float32Array.of(NaN)), 1), SyntaxError, "finite");
});
