/** This engine as a contender: the WASM backend through its interface, and the command line. */
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Contender, Workload } from "./contender.ts";
import { firstOutput } from "./first_output.ts";
import { OwnBackend } from "./own_backend.ts";

export class EntropicTime implements Contender {
  readonly name = "entropic-time";
  #backend: OwnBackend | undefined;
  #loaded = "";

  async measure(workload: Workload): Promise<number> {
    const { figure, batch, depth, tokens, attention } = workload;
    switch (figure) {
      case "decode": {
        const own = await this.#open(workload);
        const milliseconds = await own.decode(depth, tokens, attention && { attention });
        return batch * 1000 / milliseconds;
      }
      case "prefill":
        return tokens * 1000 / await (await this.#open(workload)).prefill(tokens);
      case "load": {
        await this.dispose();
        const start = performance.now();
        await this.#open(workload);
        return (performance.now() - start) / 1000;
      }
      case "cold-start":
        return await coldStart(workload);
    }
  }

  async dispose(): Promise<void> {
    await this.#backend?.dispose();
    this.#backend = undefined;
    this.#loaded = "";
  }

  async #open(workload: Workload): Promise<OwnBackend> {
    const { model, threads, batch, depth, tokens, attention, arithmetic } = workload;
    const wanted = JSON.stringify(workload);
    if (this.#backend !== undefined && this.#loaded === wanted) return this.#backend;
    await this.dispose();
    const contextLength = depth + tokens + 1;
    const prunes = attention !== undefined;
    const options = { model, threads, batch, contextLength, prunes, arithmetic };
    this.#backend = await OwnBackend.open(options);
    this.#loaded = wanted;
    return this.#backend;
  }
}

/** From the start of `deno task generate` to its first byte of text, in seconds. */
function coldStart({ model, threads }: Workload): Promise<number> {
  const cli = fileURLToPath(new URL("../../core/host/cli/generate.ts", import.meta.url));
  return firstOutput(process.execPath, [
    ...["run", "-A", "--quiet", cli, "Once upon a time", "--model", model],
    ...["--max-tokens", "1", "--threads", `${threads}`, "--context", "2048"],
  ]);
}
