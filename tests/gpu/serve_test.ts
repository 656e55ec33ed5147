/**
 * `serve --backend webgpu` on the real model, over HTTP: its greedy text beside that of `--backend wasm`
 * and llama.cpp's, and what it says of itself. Here no token is forced, so each answer counts up to
 * where it leaves another's. Software adapters take a second a step; ENTROPIC_GPU_STEPS=48 asks for as
 * many as the reference has. In the first 14, the paths of `f32` and `int8` part in four
 * (docs/webgpu.md, "How exact").
 */
import { assert, assertEquals, assertLess, assertMatch, assertStringIncludes } from "@std/assert";
import process from "node:process";
import { ADAPTER } from "../support/gpu.ts";
import { assertTied, exactGain, GREEDY_RUNS, type GreedyRun } from "../support/greedy_runs.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import { type ServerProcess, startServer } from "../support/server_process.ts";

const STEPS = Number(process.env.ENTROPIC_GPU_STEPS ?? 14);

const serve = (backend: string, ...options: readonly string[]): Promise<ServerProcess> =>
  startServer(["--backend", backend, "--context", "256", ...options]);

interface Token {
  readonly id: number;
  readonly text: string;
  /** Log-probabilities of the best five, by text. */
  readonly top: Readonly<Record<string, number>>;
}

async function answer(url: string, { promptTokens }: GreedyRun): Promise<Token[]> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      prompt: promptTokens,
      max_tokens: STEPS,
      temperature: 0,
      ignore_eos: true,
      logprobs: 5,
      entropic: { trace: true },
    }),
  });
  const { choices: [{ entropic_trace: trace, logprobs }] } = await response.json();
  return trace.map(({ id }: { readonly id: number }, i: number) => (
    { id, text: logprobs.tokens[i], top: logprobs.top_logprobs[i] }
  ));
}

const answers = (url: string): Promise<Token[][]> =>
  Promise.all(GREEDY_RUNS.map((run) => answer(url, run)));

/** Where a path leaves another; -1 where it stays. */
const parting = (path: readonly Token[], ids: readonly number[]): number =>
  path.findIndex(({ id }, step) => id !== ids[step]);

/** How far apart a row's two best are, in nats. */
function gapOf({ top }: Token): number {
  const [first = NaN, second = NaN] = Object.values(top).sort((a, b) => b - a);
  return first - second;
}

Deno.test({
  name: "serve --backend webgpu leaves another's greedy text only where two tokens are tied",
  ignore: REAL_MODEL === undefined || ADAPTER === undefined,
}, async (t) => {
  await using server = await serve("webgpu");
  const drawn = await answers(server.url);
  assertEquals(drawn.map(({ length }) => length), GREEDY_RUNS.map(() => STEPS));

  await t.step("llama.cpp's", () => {
    for (const [i, { tokens, steps }] of GREEDY_RUNS.entries()) {
      const left = parting(drawn[i]!, tokens);
      console.log(`answer ${i} is llama.cpp's ${left < 0 ? "whole" : `for ${left} tokens`}`);
      if (left >= 0) assertTied(steps[left]!, drawn[i]![left]!.id);
    }
  });

  await t.step("WASM's in the same arithmetic", async () => {
    await using wasm = await serve("wasm", "--arithmetic", "f32");
    for (const [i, path] of (await answers(wasm.url)).entries()) {
      const left = parting(path, drawn[i]!.map(({ id }) => id));
      console.log(`answer ${i} is WASM's ${left < 0 ? "whole" : `for ${left} tokens`}`);
      if (left >= 0) assertLess(gapOf(path[left]!), 0.1, `answer ${i}, step ${left}`);
    }
  });

  await t.step("WASM's in int8, or where exact arithmetic prefers what WebGPU draws", async () => {
    await using wasm = await serve("wasm");
    for (const [i, path] of (await answers(wasm.url)).entries()) {
      const left = parting(path, drawn[i]!.map(({ id }) => id));
      console.log(
        `answer ${i} is that of WASM's int8 ${left < 0 ? "whole" : `for ${left} tokens`}`,
      );
      if (left < 0) continue;
      const [ours, theirs] = [drawn[i]![left]!, path[left]!];
      const gap = gapOf(theirs), gain = exactGain(GREEDY_RUNS[i]!, path, left, ours.id);
      assert(
        gap < 0.1 || gain > 0,
        `answer ${i}, step ${left}: WebGPU draws ${ours.text}, WASM ${theirs.text}, whose two best ` +
          `are ${gap} apart; exact arithmetic prefers WebGPU's by ${gain} nats`,
      );
    }
  });

  await t.step("and says what it runs on", async () => {
    const health = await (await fetch(`${server.url}/health`)).json();
    assertEquals(health.backend.kind, "webgpu");
    assertStringIncludes(health.backend.variant, ADAPTER?.name ?? "");
    assertEquals(health.engine.kv_blocks_free, health.engine.kv_blocks_total);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assertMatch(metrics, /^entropic_model_info\{.*backend="webgpu".*\} 1$/m);
  });
});
