/**
 * Peak resident memory of a server whose whole KV cache, four contexts of 2,048 tokens, has been in
 * use: this engine's and llama.cpp's, and what this engine's may be.
 */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { MissingPeerError } from "../contender.ts";
import { libraries, llamaTool } from "../peers/llama_cpp.ts";
import type { Row, Side, Sides } from "../row.ts";
import { type ServerCommand, serverPeak } from "../server_peak.ts";

const CONTEXT = 2048;
const LOAD = { requests: 4, promptTokens: 1800, maxTokens: 200 };
const MB = 1e6;
/** What the process may have besides the model and its KV cache. */
const ALLOWANCE = 100;

export const memory: Row = {
  name: "memory",
  about: "peak of a server under four long requests, beside llama-server, and the most it may be",
  unit: "MB",
  better: "less",
  runs: 1,
  open({ model }) {
    if (!existsSync("/proc/self/status")) {
      throw new MissingPeerError("Cannot measure memory: /proc is there on Linux only");
    }
    let kvBytes = NaN;
    const own = peakOf("entropic-time", ours(model), (health) => kvBytes = kvBytesOf(health));
    const bound: Side = {
      name: `model + KV + ${ALLOWANCE} MB`,
      warmsUp: true,
      measure: async () => ((await stat(model)).size + kvBytes) / MB + ALLOWANCE,
    };
    return Promise.resolve({ own, others: [bound], ...peers(model) });
  },
};

function peakOf(
  name: string,
  command: ServerCommand,
  onHealth: (health: unknown) => void = () => {},
): Side {
  const measure = async () => {
    const { bytes, health } = await serverPeak(command, LOAD);
    onHealth(health);
    return bytes / MB;
  };
  return { name, warmsUp: true, measure };
}

function ours(model: string): ServerCommand {
  const cli = fileURLToPath(new URL("../../../core/host/cli/serve.ts", import.meta.url));
  return {
    command: process.execPath,
    args: (port) => [
      ...["run", "-A", "--quiet", cli, "--model", model, "--quiet"],
      ...["--context", `${CONTEXT}`, "--port", `${port}`],
    ],
  };
}

/** Of this project's `/health`. */
function kvBytesOf(health: unknown): number {
  const { backend } = health as { readonly backend: { readonly kv_bytes: number } };
  return backend.kv_bytes;
}

function peers(model: string): Pick<Sides, "peers" | "missing"> {
  try {
    const tool = llamaTool("llama-server");
    const args = (port: number) => [
      ...["-m", model, "-t", "1", "-np", `${LOAD.requests}`, "--port", `${port}`],
      ...["-c", `${LOAD.requests * CONTEXT}`],
    ];
    return { peers: [peakOf("llama.cpp", { command: tool, args, env: libraries(tool) })] };
  } catch (error) {
    if (!(error instanceof MissingPeerError)) throw error;
    return { missing: [error.message] };
  }
}
