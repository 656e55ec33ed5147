import { assertEquals, assertRejects } from "@std/assert";
import { ModelError } from "../errors.ts";
import { BlobSource, MemorySource } from "./memory_source.ts";

const bytes = Uint8Array.from({ length: 10 }, (_, i) => i);
const sources = [new MemorySource("memory", bytes), new BlobSource("blob", new Blob([bytes]))];

for (const source of sources) {
  Deno.test(`${source.constructor.name} reads ranges`, async () => {
    assertEquals(source.size, 10);
    const target = new Uint8Array(4);
    await source.read(6, target);
    assertEquals(target, Uint8Array.of(6, 7, 8, 9));
    await source.read(10, new Uint8Array(0));
  });

  Deno.test(`${source.constructor.name} refuses ranges that are not inside`, async () => {
    for (const [offset, length] of [[7, 4], [-1, 2], [2 ** 53, 1], [NaN, 1]] as const) {
      await assertRejects(
        () => source.read(offset, new Uint8Array(length)),
        ModelError,
        "are not inside its 10",
      );
    }
  });
}
