/** How soon a process says something. */
import { spawn } from "node:child_process";
import process from "node:process";

/**
 * From the start of a process to its first byte on stdout, in seconds; waits for its end.
 *
 * @param env Added to this process's own.
 * @throws {Error} It wrote nothing.
 */
export function firstOutput(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "ignore"],
    });
    let seconds: number | undefined;
    child.stdout.on("data", () => seconds ??= (performance.now() - start) / 1000);
    child.on("error", reject);
    child.on("close", (code) => {
      if (seconds !== undefined) resolve(seconds);
      else reject(new Error(`${command} printed nothing and ended with ${code}`));
    });
  });
}
