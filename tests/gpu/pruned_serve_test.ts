/**
 * `calibrate --backend webgpu`, then `serve --attention mass` with what it kept, over HTTP: a long
 * prompt is pruned, and answer and metrics tell of it as on WASM.
 */
import {
  assert,
  assertEquals,
  assertLess,
  assertNotEquals,
  assertStringIncludes,
} from "@std/assert";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCli } from "../support/cli_process.ts";
import { ADAPTER } from "../support/gpu.ts";
import { promptOf } from "../support/engine_runs.ts";
import { startServer } from "../support/server_process.ts";
import { temporaryDirectory } from "../support/temporary_directory.ts";
import { tinyModel } from "../support/tiny_model.ts";

async function calibrate(model: string, ...options: string[]): Promise<string> {
  const settings = ["--backend", "webgpu", "--quick", "--model", model, ...options];
  const { code, stdout, stderr } = await runCli("calibrate", settings);
  assertEquals(code, 0, stderr);
  return stdout.trim();
}

/** What a pruned answer says of its attention, and the server's count of pruned tokens. */
async function pruned(backend: string, model: string) {
  const settings = ["--attention", "mass", "--attention-mass", "0.6"];
  await using server = await startServer(["--backend", backend, "--model", model, ...settings]);
  const response = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      prompt: promptOf(1200, 5),
      max_tokens: 6,
      temperature: 0,
      ignore_eos: true,
    }),
  });
  const { entropic: { attention } } = await response.json();
  const health = await (await fetch(`${server.url}/health`)).json();
  assertEquals([health.backend.kind, health.attention.policy], [backend, "mass"]);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assertStringIncludes(
    metrics,
    `entropic_attention_pruned_steps_total ${attention.pruned_steps}\n`,
  );
  return attention;
}

Deno.test({
  name: "calibrate and serve --attention mass on WebGPU prune what WASM prunes",
  ignore: ADAPTER === undefined,
}, async () => {
  await using folder = await temporaryDirectory();
  const model = join(folder.path, "tiny.gguf");
  await writeFile(model, tinyModel({ type: "F16", contextLength: 2048 }));
  assertEquals(await calibrate(model), `${model}.calibration.json`);
  const found = await pruned("webgpu", model), expected = await pruned("wasm", model);
  assertEquals(found.pruned_steps, 5);
  assertLess(found.blocks_read, 0.8 * found.blocks_total);
  assertEquals(found.blocks_total, expected.blocks_total);
  const differing = Math.abs(found.blocks_read - expected.blocks_read);
  assert(
    differing <= 0.02 * expected.blocks_read,
    `${differing} of ${expected.blocks_read} blocks`,
  );
});

Deno.test({
  name: "calibrate sketches the keys of the arithmetic that it is given",
  ignore: ADAPTER === undefined,
}, async () => {
  await using folder = await temporaryDirectory();
  const model = join(folder.path, "tiny.gguf");
  await writeFile(model, tinyModel({ type: "Q8_0", contextLength: 2048 }));
  const sketchOf = async (...options: string[]) => {
    const path = await calibrate(model, ...options);
    return JSON.parse(await readFile(path, "utf8"));
  };
  const rounded = await sketchOf("--arithmetic", "int8");
  const exact = await sketchOf("--arithmetic", "f32");
  assertEquals(await sketchOf(), exact);
  assertNotEquals(rounded, exact);
});
