/** Runs the tools that a build needs. */
import { spawnSync } from "node:child_process";
import process from "node:process";

/** A tool failed, or is missing; the message is for whoever called the build. */
export class BuildError extends Error {
  override readonly name = "BuildError";
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What the command printed, or `undefined` where it failed or does not exist. */
export function tryCommand(
  [program, ...args]: readonly [string, ...string[]],
): string | undefined {
  const { status, stdout } = spawnSync(program, args, { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

/** @throws {BuildError} The command failed; carries what it printed. */
export function runCommand(
  [program, ...args]: readonly [string, ...string[]],
  { cwd, env }: CommandOptions = {},
): void {
  const result = spawnSync(program, args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (result.status === 0) return;
  const output = [result.error?.message, result.stdout, result.stderr].filter(Boolean).join("\n");
  throw new BuildError(`Cannot build: ${[program, ...args].join(" ")} failed\n${output}`);
}
