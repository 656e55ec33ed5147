import { assert, assertRejects } from "@std/assert";
import process from "node:process";
import { firstOutput } from "./first_output.ts";

Deno.test("firstOutput gives the seconds to the first output, and the environment", async () => {
  const script = "console.log(process.env.FIRST_OUTPUT_TEST); setTimeout(() => {}, 50)";
  const seconds = await firstOutput(process.execPath, ["eval", script], { FIRST_OUTPUT_TEST: "x" });
  assert(seconds > 0);
});

Deno.test("firstOutput rejects where a process prints nothing, or does not start", async () => {
  await assertRejects(() => firstOutput(process.execPath, ["eval", ""]), Error, "printed nothing");
  await assertRejects(() => firstOutput("/no/such/program", []), Error);
});
