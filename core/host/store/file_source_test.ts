import { assertEquals, assertRejects } from "@std/assert";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import { ModelError } from "../../errors.ts";
import { FileSource, openFiles } from "./file_source.ts";

const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => i % 251);

Deno.test("FileSource reads ranges, several at once", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "m.gguf");
  await writeFile(path, bytes);
  const source = await FileSource.open(path);
  assertEquals([source.name, source.size], ["m.gguf", bytes.length]);
  await Promise.all([0, 5000, 99_000].map(async (offset) => {
    const target = new Uint8Array(1000);
    await source.read(offset, target);
    assertEquals(target, bytes.subarray(offset, offset + 1000));
  }));
  await source.close();
});

Deno.test("FileSource refuses ranges outside the file, also after it shrank", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "m.gguf");
  await writeFile(path, bytes);
  const source = await FileSource.open(path);
  await assertRejects(() => source.read(99_999, new Uint8Array(2)), ModelError, "are not inside");
  await truncate(path, 10);
  await assertRejects(() => source.read(0, new Uint8Array(20)), ModelError, "it ends at byte 10");
  await source.close();
});

Deno.test("FileSource names a file that is not there, or is none", async () => {
  await using directory = await temporaryDirectory();
  const missing = join(directory.path, "none.gguf");
  const error = await assertRejects(() => FileSource.open(missing), ModelError, "Cannot open");
  assertEquals(error.subject, missing);
  await assertRejects(() => FileSource.open(directory.path), ModelError, directory.path);
  await assertRejects(() => openFiles([missing]), ModelError);
});
