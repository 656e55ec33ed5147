/** Child processes of the test runner: output kept back, a time limit, nothing on stdin. */
import { spawn } from "node:child_process";

export interface CommandResult {
  readonly ok: boolean;
  /** stdout and stderr in the order in which they came. */
  readonly output: string;
}

/** Longest that one command may take, in milliseconds. */
const TIME_LIMIT = 20 * 60_000;

/** Runs a command to its end. Never rejects: what cannot be started is a failure with a message. */
export function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: TIME_LIMIT,
      killSignal: "SIGKILL",
    });
    const chunks: Uint8Array[] = [];
    child.stdout.on("data", (chunk: Uint8Array) => chunks.push(chunk));
    child.stderr.on("data", (chunk: Uint8Array) => chunks.push(chunk));
    const finish = (ok: boolean, reason: string) => {
      const output = Buffer.concat(chunks).toString("utf8").trimEnd();
      resolve({ ok, output: reason === "" ? output : `${output}\n${reason}`.trimStart() });
    };
    child.on("error", (error) => finish(false, error.message));
    child.on("close", (code, signal) => {
      finish(code === 0, signal === null ? "" : `${command} ended by ${signal}`);
    });
  });
}
