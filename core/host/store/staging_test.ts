import { assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import { Staging } from "./staging.ts";

const KEY = ["hf", "owner", "model"];

/** Larger than any process id. */
const DEAD_PID = 2 ** 30;

const no = () => Promise.resolve(false);
const yes = () => Promise.resolve(true);

async function prepare(staging: Staging, text: string): Promise<void> {
  await mkdir(staging.files, { recursive: true });
  await writeFile(join(staging.files, "m.gguf"), text);
}

Deno.test("Staging publishes its files under the target, and goes", async () => {
  await using directory = await temporaryDirectory();
  const staging = await Staging.claim(directory.path, KEY);
  await prepare(staging, "new");
  const target = join(directory.path, ...KEY);
  await staging.publish(target, no);
  assertEquals(await readFile(join(target, "m.gguf"), "utf8"), "new");
  assertEquals(await readdir(join(directory.path, ".staging")), []);
});

Deno.test("Staging never gives one folder to two at once", async () => {
  await using directory = await temporaryDirectory();
  const [one, two] = await Promise.all([1, 2].map(() => Staging.claim(directory.path, KEY)));
  assertNotEquals(one!.path, two!.path);
});

Deno.test("Staging hands on what was released, to one", async () => {
  await using directory = await temporaryDirectory();
  const first = await Staging.claim(directory.path, KEY);
  await writeFile(join(first.path, "data"), "half");
  await first.release();
  const claims = await Promise.all([1, 2, 3].map(() => Staging.claim(directory.path, KEY)));
  const contents = await Promise.all(claims.map(({ path }) => readdir(path)));
  assertEquals(contents.flat(), ["data"]);
});

Deno.test("Staging takes over from a dead process of this machine, and from no other", async () => {
  for (const [owner, isTaken] of [[hostname(), true], ["another-machine", false]] as const) {
    await using directory = await temporaryDirectory();
    const dead = await Staging.claim(directory.path, KEY);
    await writeFile(join(dead.path, "data"), "half");
    const name = `${KEY.join("+")}~${owner}~${DEAD_PID}~0`;
    await rename(dead.path, join(directory.path, ".staging", name));
    const next = await Staging.claim(directory.path, KEY);
    assertEquals(await readdir(next.path), isTaken ? ["data"] : []);
  }
});

Deno.test("Staging leaves the work of a running process and other models alone", async () => {
  await using directory = await temporaryDirectory();
  const running = await Staging.claim(directory.path, KEY);
  await writeFile(join(running.path, "data"), "half");
  const other = await Staging.claim(directory.path, [...KEY, "other"]);
  await writeFile(join(other.path, "data"), "half");
  await other.release();
  assertEquals(await readdir((await Staging.claim(directory.path, KEY)).path), []);
});

Deno.test("Staging keeps what another published meanwhile, and replaces what is not whole", async () => {
  await using directory = await temporaryDirectory();
  const target = join(directory.path, ...KEY);
  for (const [isWhole, expected] of [[yes, "theirs"], [no, "ours"]] as const) {
    const staging = await Staging.claim(directory.path, KEY);
    await mkdir(target, { recursive: true });
    await writeFile(join(target, "m.gguf"), "theirs");
    await prepare(staging, "ours");
    await staging.publish(target, isWhole);
    assertEquals(await readFile(join(target, "m.gguf"), "utf8"), expected);
    assertEquals(await readdir(join(directory.path, ".staging")), []);
  }
});

Deno.test("Staging fails to publish where there is nothing to publish", async () => {
  await using directory = await temporaryDirectory();
  const staging = await Staging.claim(directory.path, KEY);
  await assertRejects(() => staging.publish(join(directory.path, ...KEY), no));
});
