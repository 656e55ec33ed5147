import { assertEquals } from "@std/assert";
import { packStrings } from "./pack_strings.ts";

Deno.test("packStrings lays strings end to end", () => {
  const { bytes, ends } = packStrings(["a", "", "é😀", "b"]);
  assertEquals(new TextDecoder().decode(bytes), "aé😀b");
  assertEquals([...ends], [1, 1, 7, 8]);
});

Deno.test("packStrings packs what `change` makes of each string", () => {
  const { bytes, ends } = packStrings(["a", "b"], (text, index) => text.repeat(index * 50));
  assertEquals(new TextDecoder().decode(bytes), "b".repeat(50));
  assertEquals([...ends], [0, 50]);
});

Deno.test("packStrings grows with long strings", () => {
  const long = "€".repeat(1000);
  const { bytes, ends } = packStrings([long, "x", long]);
  assertEquals([...ends], [3000, 3001, 6001]);
  assertEquals(new TextDecoder().decode(bytes), `${long}x${long}`);
});

Deno.test("packStrings packs nothing", () => {
  assertEquals(packStrings([]).bytes.length, 0);
});
