import { assertEquals } from "@std/assert";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import { cachedFiles, cacheDirectory } from "./cache_directory.ts";

Deno.test("cacheDirectory goes by option, then by its variable, then by the user's cache", () => {
  const environment = { ENTROPIC_MODEL_DIR: "/env", XDG_CACHE_HOME: "/xdg" };
  assertEquals(cacheDirectory("/given", environment), resolve("/given"));
  assertEquals(cacheDirectory(undefined, environment), resolve("/env"));
  assertEquals(
    cacheDirectory(undefined, { XDG_CACHE_HOME: "/xdg" }),
    join("/xdg", "entropic-time"),
  );
  assertEquals(cacheDirectory(undefined, {}), join(homedir(), ".cache", "entropic-time"));
});

Deno.test("cachedFiles lists models by name, without downloads under way", async () => {
  await using directory = await temporaryDirectory();
  for (const folder of ["b", "a/deep", ".staging/x/files"]) {
    await mkdir(join(directory.path, folder), { recursive: true });
    await writeFile(join(directory.path, folder, "m.gguf"), folder);
    await writeFile(join(directory.path, folder, "notes.txt"), "");
  }
  const files = await cachedFiles(directory.path);
  assertEquals(files.map(({ name, size }) => [name, size]), [["a/deep/m.gguf", 6], [
    "b/m.gguf",
    1,
  ]]);
  assertEquals(await cachedFiles(join(directory.path, "none")), []);
});
