/** node-llama-cpp, llama.cpp as a native addon, in a Node process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Contender, Workload } from "../contender.ts";
import { peerPath } from "./folder.ts";

/** Runs in Node: a message in is a workload, a message out its figure. */
const CHILD = `
import { getLlama } from "node-llama-cpp";
const llama = await getLlama({ gpu: false, logLevel: "error", build: "never" });
let model, context, key;
process.on("message", async (w) => {
  const wanted = w.model + w.threads;
  if (key !== wanted) {
    await context?.dispose(); await model?.dispose();
    model = await llama.loadModel({ modelPath: w.model });
    context = await model.createContext({ contextSize: 2048, threads: { ideal: w.threads, min: w.threads } });
    key = wanted;
  }
  const sequence = context.getSequence();
  const token = model.tokenize(" time")[0];
  const prompt = new Array(w.figure === "prefill" ? w.tokens : w.depth + 16).fill(token);
  const start = performance.now();
  let first, last, count = 0;
  for await (const _ of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    last = performance.now();
    first ??= last;
    if (w.figure === "prefill" || ++count > w.tokens) break;
  }
  sequence.dispose();
  process.send(w.figure === "prefill"
    ? prompt.length / ((first - start) / 1000)
    : (count - 1) / ((last - first) / 1000));
});
process.send("ready");
`;

export class NodeLlamaCpp implements Contender {
  readonly name: string;
  #child: ChildProcess | undefined;

  /** @throws {MissingPeerError} It is not installed. */
  constructor() {
    const folder = peerPath("node-llama-cpp", "node_modules", "node-llama-cpp");
    this.name = `node-llama-cpp ${
      JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version
    }`;
  }

  async measure(workload: Workload): Promise<number> {
    if (workload.figure !== "decode" && workload.figure !== "prefill") {
      throw new RangeError(`Cannot measure ${workload.figure} with node-llama-cpp`);
    }
    const child = this.#child ??= await start();
    const answer = reply(child);
    child.send(workload);
    return Number(await answer);
  }

  dispose(): Promise<void> {
    this.#child?.kill();
    this.#child = undefined;
    return Promise.resolve();
  }
}

/** A file, not `--eval`: node-llama-cpp starts more processes with the flags of its own. */
async function start(): Promise<ChildProcess> {
  const folder = peerPath("node-llama-cpp");
  const script = join(folder, "entropic-bench.mjs");
  writeFileSync(script, CHILD);
  const child = spawn("node", [script], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await reply(child);
  return child;
}

/** The child's next message. */
async function reply(child: ChildProcess): Promise<unknown> {
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`node-llama-cpp ended with ${code}`);
  });
  const [message] = await Promise.race([once(child, "message"), ended]);
  return message;
}
