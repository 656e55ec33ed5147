/** Runs an OpenAI-compatible server under load and tells the most memory that it ever had resident. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import process from "node:process";
import { setTimeout } from "node:timers/promises";

export interface ServerCommand {
  readonly command: string;
  /** The port that it is to listen on is added. */
  readonly args: (port: number) => readonly string[];
  /** Added to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Load {
  /** Requests at once, each with a prompt of its own. */
  readonly requests: number;
  readonly promptTokens: number;
  readonly maxTokens: number;
}

export interface Peak {
  /** Most bytes resident, as Linux counts them: mapped files are in it. */
  readonly bytes: number;
  /** What `/health` answered at the end. */
  readonly health: unknown;
}

/** @throws {Error} The server ended, or refused a request. */
export async function serverPeak(server: ServerCommand, load: Load): Promise<Peak> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(server.command, server.args(port), {
    env: { ...process.env, ...server.env },
    stdio: "ignore",
  });
  try {
    await ready(url, child);
    await Promise.all(prompts(load).map((prompt) => complete(url, prompt, load.maxTokens)));
    const status = await readFile(`/proc/${child.pid}/status`, "utf8");
    const health = await (await fetch(`${url}/health`)).json();
    return { bytes: peakBytes(status), health };
  } finally {
    const ended = child.exitCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await ended;
  }
}

/** The peak that the text of a `/proc/PID/status` tells. @throws {SyntaxError} It tells none. */
export function peakBytes(status: string): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes === undefined) throw new SyntaxError("Cannot read peak memory: no VmHWM in status");
  return Number(kilobytes) * 1024;
}

/** Token ids: each prompt differs from its first token on, so that none serves as another's prefix. */
export function prompts({ requests, promptTokens }: Load): number[][] {
  return Array.from(
    { length: requests },
    (_, index) => Array.from({ length: promptTokens }, (_, at) => 100 + (index + 7 * at) % 200),
  );
}

async function complete(url: string, prompt: readonly number[], tokens: number): Promise<void> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ prompt, max_tokens: tokens, temperature: 0, ignore_eos: true }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`Cannot load the server: it answered ${text}`);
}

async function ready(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await setTimeout(100);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (typeof address === "object" && address !== null) return address.port;
  throw new Error("Cannot find a free port");
}
