/**
 * `deno bench -A tests/bench/kernels_bench.ts`: the kernels one by one, for day-to-day work. Matrices
 * and attention run inside whole forward passes of small made-up models that hardly do anything else;
 * statistics through their own entry point.
 */
import { type AttentionPlan, BLOCK_SIZE, DENSE } from "../../core/engine/backend.ts";
import { keySketch } from "../../core/host/calibrate/key_sketch.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { createWasmBackend } from "../../wasm/backend.ts";
import { chooseVariant, compile, instantiate } from "../../wasm/loader.ts";
import { normals, randomNumbers } from "../support/random.ts";
import { tinyModel, type TinyModelOptions } from "../support/tiny_model.ts";

/**
 * Widths of SmolLM2-135M, but that blocks of 256 fit; some 9 million weights. The last layer of a
 * prompt runs for its last token only.
 */
const MATRICES = { layers: 3, hiddenSize: 512, feedForwardSize: 1536, heads: 8, headSize: 64 };
/** Attention of SmolLM2-135M in a few layers, matrices as small as they may be. */
const ATTENTION = {
  ...{ layers: 6, hiddenSize: 64, feedForwardSize: 64, heads: 9, kvHeads: 3, headSize: 64 },
  contextLength: 8192,
};
const VOCABULARY = 49152;
/** Chooses blocks by their number alone: the attention of random keys is flat. */
const PRUNED: AttentionPlan = { kind: "mass", mass: 0.01, minBlocks: 24 };

async function open(options: TinyModelOptions, contextLength: number) {
  const { files } = await openModel([new MemorySource("bench.gguf", tinyModel(options))]);
  const kvBlocks = contextLength / BLOCK_SIZE;
  const backend = await createWasmBackend({ files, contextLength, kvBlocks });
  const random = randomNumbers(5);
  const tokens = Uint32Array.from(
    { length: contextLength },
    () => Math.floor(random() * files.config.vocabularySize),
  );
  const blockTable = Array.from({ length: kvBlocks }, (_, block) => block);
  const run = (position: number, count: number, attention = DENSE) =>
    backend.forward([{
      tokens: tokens.subarray(position, position + count),
      position,
      blockTable,
      attention,
      output: "last",
    }]);
  return { backend, run };
}

/** Loaded at the first call: a model is made for what is run, and for nothing else. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => made ??= make();
}

for (const type of Object.keys(TENSOR_TYPES) as TensorType[]) {
  const model = once(() => open({ ...MATRICES, type }, 256));
  for (const tokens of [1, 8, 128]) {
    Deno.bench({
      name: `matmul ${type}, tokens ${tokens}`,
      group: `matmul, tokens ${tokens}`,
      baseline: type === "Q4_1",
      async fn(bench) {
        const { run } = await model();
        bench.start();
        await run(0, tokens);
        bench.end();
      },
    });
  }
}

const attentive = once(async () => {
  const { backend, run } = await open({ ...ATTENTION, type: "F32" }, ATTENTION.contextLength);
  const { pruning } = backend;
  if (pruning === undefined) throw new TypeError("Cannot bench pruning: the backend has none");
  await pruning.gather(true);
  await run(0, 256);
  const moments = await pruning.gather(false);
  if (moments === undefined) throw new TypeError("Cannot bench pruning: nothing was gathered");
  await pruning.useSketch(keySketch(moments, backend.config));
  for (let at = 0; at < ATTENTION.contextLength; at += 256) await run(at, 256);
  return run;
});

for (const depth of [512, 2048, 6144]) {
  for (const [name, plan] of Object.entries({ dense: DENSE, pruned: PRUNED })) {
    Deno.bench({
      name: `attention ${name}, depth ${depth}`,
      group: `attention, depth ${depth}`,
      baseline: name === "dense",
      async fn(bench) {
        const run = await attentive();
        bench.start();
        await run(depth, 1, plan);
        bench.end();
      },
    });
  }
}

const statistics = once(async () => {
  const module = await compile(
    chooseVariant("auto", 1),
    new URL("../../wasm/lib/", import.meta.url),
  );
  const exports = await instantiate(module);
  const reserve = (bytes: number) => exports.probe_reserve(bytes) >>> 0;
  const topK = 64;
  const logits = reserve(4 * VOCABULARY);
  const [ids, best, out] = [reserve(4 * topK), reserve(4 * topK), reserve(40)];
  new Float32Array(exports.memory.buffer, logits, VOCABULARY)
    .set(normals(VOCABULARY, 2.5, randomNumbers(3)));
  return () => exports.probe_statistics(logits, VOCABULARY, 2, topK, ids, best, out);
});

Deno.bench({
  name: `statistics of ${VOCABULARY} logits, best 64`,
  async fn(bench) {
    const run = await statistics();
    bench.start();
    run();
    bench.end();
  },
});
