import { assert, assertAlmostEquals, assertEquals, assertNotEquals } from "@std/assert";
import { philox, uniform } from "./random.ts";

Deno.test("philox gives the known answers of Random123", () => {
  assertEquals(
    philox([0, 0, 0, 0], [0, 0]),
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  );
  const ones = 0xffffffff;
  assertEquals(
    philox([ones, ones, ones, ones], [ones, ones]),
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  );
  assertEquals(
    philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  );
});

Deno.test("uniform uses all 64 bits of the seed", () => {
  assertNotEquals(uniform(1n, 0), uniform(1n + (1n << 32n), 0));
  assertNotEquals(uniform(1n, 0), uniform(1n + (1n << 63n), 0));
  assertEquals(uniform(7n, 3), uniform(7n, 3));
});

Deno.test("uniform fills [0, 1) evenly over steps and over seeds", () => {
  const draws = 20_000;
  for (const draw of [(i: number) => uniform(9n, i), (i: number) => uniform(BigInt(i), 0)]) {
    let sum = 0, squares = 0;
    for (let i = 0; i < draws; i++) {
      const u = draw(i);
      assert(u >= 0 && u < 1);
      sum += u;
      squares += u * u;
    }
    assertAlmostEquals(sum / draws, 1 / 2, 0.01);
    assertAlmostEquals(squares / draws, 1 / 3, 0.01);
  }
});
