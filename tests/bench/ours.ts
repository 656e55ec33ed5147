/** This engine as a contender: the WASM backend through its interface, and the command line. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Backend, BLOCK_SIZE, DENSE, type SequenceInput } from "../../core/engine/backend.ts";
import { openFiles } from "../../core/host/store/file_source.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { createWasmBackend } from "../../wasm/backend.ts";
import type { Contender, Workload } from "./contender.ts";

/** Any token: speed does not depend on it. */
const TOKEN = 655;

export class EntropicTime implements Contender {
  readonly name = "entropic-time";
  #backend: Backend | undefined;
  #loaded = "";

  async measure(workload: Workload): Promise<number> {
    switch (workload.figure) {
      case "decode":
        return await decode(await this.#open(workload), workload);
      case "prefill":
        return await prefill(await this.#open(workload), workload);
      case "load": {
        await this.dispose();
        const start = performance.now();
        await this.#open(workload);
        return (performance.now() - start) / 1000;
      }
      case "cold-start":
        return await firstOutput(workload);
    }
  }

  async dispose(): Promise<void> {
    await this.#backend?.dispose();
    this.#backend = undefined;
    this.#loaded = "";
  }

  async #open({ model, threads, batch, depth, tokens }: Workload): Promise<Backend> {
    const contextLength = Math.ceil((depth + tokens + 1) / BLOCK_SIZE) * BLOCK_SIZE;
    const wanted = JSON.stringify({ model, threads, batch, contextLength });
    if (this.#backend !== undefined && this.#loaded === wanted) return this.#backend;
    await this.dispose();
    const sources = await openFiles([model]);
    try {
      const { files } = await openModel(sources);
      this.#backend = await createWasmBackend({
        files,
        threads,
        contextLength,
        kvBlocks: batch * contextLength / BLOCK_SIZE,
      });
    } finally {
      await Promise.all(sources.map((source) => source.close()));
    }
    this.#loaded = wanted;
    return this.#backend;
  }
}

/** The next `count` tokens of sequence `index` from `position` on; each sequence has its own blocks. */
function part(
  backend: Backend,
  index: number,
  position: number,
  count: number,
  output: SequenceInput["output"],
): SequenceInput {
  const blocks = backend.limits.contextLength / BLOCK_SIZE;
  return {
    tokens: new Uint32Array(count).fill(TOKEN),
    position,
    blockTable: Array.from({ length: blocks }, (_, at) => index * blocks + at),
    attention: DENSE,
    output,
  };
}

/** Fills the KV cache of each sequence up to `depth`, in the largest steps that the backend takes. */
async function fill(backend: Backend, batch: number, depth: number): Promise<void> {
  const step = backend.limits.maxBatchTokens;
  for (let index = 0; index < batch; index++) {
    for (let at = 0; at < depth; at += step) {
      await backend.forward([part(backend, index, at, Math.min(step, depth - at), "none")]);
    }
  }
}

async function decode(backend: Backend, { batch, depth, tokens }: Workload): Promise<number> {
  await fill(backend, batch, depth);
  const step = (position: number) =>
    backend.forward(
      Array.from({ length: batch }, (_, index) => part(backend, index, position, 1, "last")),
    );
  await step(depth);
  const start = performance.now();
  for (let at = 0; at < tokens; at++) await step(depth + at);
  return batch * tokens / ((performance.now() - start) / 1000);
}

async function prefill(backend: Backend, { tokens }: Workload): Promise<number> {
  const step = backend.limits.maxBatchTokens;
  await backend.forward([part(backend, 0, 0, Math.min(step, tokens), "last")]);
  const start = performance.now();
  for (let at = 0; at < tokens; at += step) {
    const count = Math.min(step, tokens - at);
    const output = at + count === tokens ? "last" : "none";
    await backend.forward([part(backend, 0, at, count, output)]);
  }
  return tokens / ((performance.now() - start) / 1000);
}

/** From the start of `deno task generate` to its first byte of text, in seconds. */
function firstOutput({ model, threads }: Workload): Promise<number> {
  const cli = fileURLToPath(new URL("../../core/host/cli/generate.ts", import.meta.url));
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(Deno.execPath(), [
      ...["run", "-A", "--quiet", cli, "Once upon a time", "--model", model],
      ...["--max-tokens", "1", "--threads", `${threads}`, "--context", "2048"],
    ], { stdio: ["ignore", "pipe", "inherit"] });
    let seconds: number | undefined;
    child.stdout.on("data", () => seconds ??= (performance.now() - start) / 1000);
    child.on("error", reject);
    child.on("close", (code) => {
      if (seconds !== undefined) resolve(seconds);
      else reject(new Error(`generate printed nothing and ended with ${code}`));
    });
  });
}
