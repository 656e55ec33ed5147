import { assertEquals, assertRejects } from "@std/assert";
import { merge } from "./merge.ts";

async function* from<T>(values: readonly T[], log?: (value: string) => void) {
  try {
    for (const value of values) {
      log?.(`read ${value}`);
      yield value;
    }
  } finally {
    log?.("closed");
  }
}

Deno.test("merge keeps the order within each source and loses nothing", async () => {
  const all: (readonly [number, string])[] = [];
  for await (const one of merge([from(["a", "b", "c"]), from(["x"]), from([])])) all.push(one);
  assertEquals(all.filter(([index]) => index === 0).map(([, value]) => value), ["a", "b", "c"]);
  assertEquals(all.filter(([index]) => index === 1).map(([, value]) => value), ["x"]);
  assertEquals(all.length, 4);
});

Deno.test("merge does not wait for a silent source", async () => {
  const gate = Promise.withResolvers<void>();
  async function* late() {
    await gate.promise;
    yield "late";
  }
  const values: string[] = [];
  for await (const [, value] of merge([late(), from(["a", "b"])])) {
    values.push(value);
    if (value === "b") gate.resolve();
  }
  assertEquals(values, ["a", "b", "late"]);
});

Deno.test("merge reads one value ahead of its caller and no more", async () => {
  const log: string[] = [];
  const merged = merge([from(["a", "b", "c", "d"], (line) => log.push(line))]);
  await merged.next();
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(log, ["read a"]);
  await merged.next();
  assertEquals(log, ["read a", "read b"]);
  await merged.return();
});

Deno.test("merge passes an error on and closes the other sources", async () => {
  const log: string[] = [];
  // deno-lint-ignore require-yield -- it fails before it has anything to say
  async function* failing(): AsyncGenerator<string> {
    await Promise.resolve();
    throw new Error("broken");
  }
  await assertRejects(
    async () => {
      for await (const _ of merge([from(["a", "b", "c"], (line) => log.push(line)), failing()]));
    },
    Error,
    "broken",
  );
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(log.at(-1), "closed");
});
