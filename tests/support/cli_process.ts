/** Commands of `core/host/cli` as processes of their own. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { fileURLToPath } from "node:url";

/** @param name Of the command, as its file is called. */
export function startCli(name: string, args: readonly string[]): Deno.ChildProcess {
  const script = fileURLToPath(new URL(`../../core/host/cli/${name}.ts`, import.meta.url));
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", script, ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Runs a command to its end. */
export async function runCli(name: string, args: readonly string[]) {
  const { code, stdout, stderr } = await startCli(name, args).output();
  const [out, complaints] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, stdout: out ?? "", stderr: complaints ?? "" };
}

/**
 * Expects that a command ends at once, as misused, and says what it takes.
 *
 * @param cases What is added to `args`, and what the command says of it.
 */
export async function assertCliRefuses(
  name: string,
  args: readonly string[],
  cases: readonly (readonly [flags: readonly string[], says: string])[],
): Promise<void> {
  for (const [flags, says] of cases) {
    const { code, stderr } = await runCli(name, [...args, ...flags]);
    assertEquals(code, 2, flags.join(" "));
    assertStringIncludes(stderr, says);
  }
}
