/**
 * WebGPU beside WASM, and what a step on it is made of: by kernel its dispatches, time, bytes and
 * share of the bandwidth that the GPU reaches in plain reads, from timestamp queries.
 */
import { DENSE, type Draw, type SequenceInput } from "../../../core/engine/backend.ts";
import { BackendError } from "../../../core/errors.ts";
import { withSources } from "../../../core/host/open_engine.ts";
import { openModel } from "../../../core/model/gguf/open_model.ts";
import { createWebGpuBackend, type WebGpuBackendOptions } from "../../../gpu/backend.ts";
import { openDevice, probeAdapter } from "../../../gpu/device.ts";
import type { KernelTime } from "../../../gpu/profile.ts";
import type { WebGpuBackend } from "../../../gpu/webgpu_backend.ts";
import { MissingPeerError } from "../contender.ts";
import { readBandwidth } from "../gpu_bandwidth.ts";
import { EntropicTime } from "../ours.ts";
import type { Bench, Detail, Row, Side, Sides } from "../row.ts";

interface GpuRow {
  readonly name: string;
  readonly about: string;
  /** Sequences that decode together; their tokens count. */
  readonly batch: number;
  /** Positions in the cache of each. */
  readonly depth: number;
  /** New tokens of each sequence a step. */
  readonly tokens: number;
  /** Other ways to multiply matrices. */
  readonly others?: readonly (keyof typeof OTHERS)[];
}

type Variant = Pick<WebGpuBackendOptions, "arithmetic" | "staging">;

/** Ways to multiply that are not the default, which is f32, on a GPU through workgroup memory. */
const OTHERS = {
  int8: (): [name: string, Variant] => ["int8", { arithmetic: "int8" }],
  staging: (software: boolean): [name: string, Variant] => [
    `f32, ${software ? "through" : "past"} workgroup memory`,
    { staging: software },
  ],
};

/** How tokens come about in sides with two steps in flight. */
const DRAWS: Readonly<Record<string, Draw>> = {
  greedy: { topK: 0, topP: 1, minP: 0, temperature: 0, u: 0.5 },
  drawn: { topK: 0, topP: 0.95, minP: 0, temperature: 0.8, u: 0.5 },
};

/** Steps of a run: enough that a GPU's clock has risen, few enough for a processor that plays one. */
const STEPS = { gpu: 64, software: 2 };
const CONTEXT = 8192;
/** Any token; every vocabulary has this one. */
const TOKEN = 65;

const gpuRow = (row: GpuRow): Row => ({
  name: row.name,
  about: row.about,
  unit: "tokens/s",
  better: "more",
  open: (bench) => openSides(row, bench),
});

export const GPU_ROWS: readonly Row[] = [
  gpuRow({
    name: "gpu",
    about: "decode on WebGPU beside WASM, and what each kernel takes",
    ...{ batch: 1, depth: 64, tokens: 1, others: ["int8"] },
  }),
  gpuRow({
    name: "gpu-batch-16",
    about: "decode of 16 sequences on WebGPU",
    ...{ batch: 16, depth: 64, tokens: 1, others: ["int8"] },
  }),
  gpuRow({
    name: "gpu-depth-6144",
    about: "decode at depth 6144 on WebGPU",
    ...{ batch: 1, depth: 6144, tokens: 1 },
  }),
  gpuRow({
    name: "gpu-prefill",
    about: "prefill of 256 tokens a step on WebGPU",
    ...{ batch: 1, depth: 0, tokens: 256 },
    others: ["staging", "int8"],
  }),
];

async function openSides(row: GpuRow, bench: Bench): Promise<Sides> {
  const adapter = await probeAdapter();
  if (adapter === undefined) {
    throw new MissingPeerError("Cannot measure WebGPU: there is no adapter; install a GPU driver");
  }
  const steps = adapter.software ? STEPS.software : STEPS.gpu;
  const sideOf = (name: string, backend: WebGpuBackend, run = oneByOne): Side => ({
    name: `WebGPU, ${name}`,
    measure: async () => {
      const start = performance.now();
      await run(backend, row, steps);
      return 1000 * steps * row.batch * row.tokens / (performance.now() - start);
    },
  });
  const backend = await openBackend(row, bench);
  const others: Side[] = [];
  if (row.tokens === 1) {
    for (const [name, draw] of Object.entries(DRAWS)) {
      others.push(sideOf(`two steps in flight, ${name}`, backend, twoInFlight(draw)));
    }
  }
  for (const other of row.others ?? []) {
    const [name, variant] = OTHERS[other](adapter.software);
    others.push(sideOf(name, await openBackend(row, bench, variant)));
  }
  return {
    own: sideOf(backend.describe().variant, backend),
    others,
    ...(row.tokens === 1 && row.depth < 1000 && { peers: [wasmSide(row, bench)] }),
    details: () => profileWherePossible(backend, stepOf(row, 0)),
  };
}

async function oneByOne(backend: WebGpuBackend, row: GpuRow, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await backend.forward(stepOf(row, step));
}

/** Each decode begins before the one before it was read, as in the engine. */
function twoInFlight(draw: Draw) {
  return async (backend: WebGpuBackend, row: GpuRow, steps: number): Promise<void> => {
    let running = backend.forward(stepOf(row, 0, draw));
    for (let step = 1; step < steps; step++) {
      const next = backend.follow(
        stepOf(row, step, draw).map(({ tokens: _, ...input }, row) => ({ ...input, row })),
      );
      await running;
      running = next;
    }
    await running;
  };
}

/** Opens it, its sequences filled to the row's depth. */
async function openBackend(
  row: GpuRow,
  bench: Bench,
  variant?: Variant,
): Promise<WebGpuBackend> {
  const backend = await withSources({ paths: [bench.model] }, async (sources) => {
    const { files } = await openModel(sources);
    const kvBlocks = row.batch * Math.ceil((row.depth + row.tokens + STEPS.gpu) / 16);
    return await createWebGpuBackend({ files, contextLength: CONTEXT, kvBlocks, ...variant });
  });
  bench.defer(() => backend.dispose());
  await fill(backend, row);
  return backend;
}

/** The WASM backend at the same decode. */
function wasmSide({ batch, depth }: GpuRow, bench: Bench): Side {
  const wasm = new EntropicTime();
  bench.defer(() => wasm.dispose());
  const workload = { figure: "decode", model: bench.model, threads: 1, tokens: 16 } as const;
  return { name: "WASM, 1 thread", measure: () => wasm.measure({ ...workload, batch, depth }) };
}

/** Each sequence has blocks of its own. A decode goes on; a prefill starts over. */
function stepOf({ batch, depth, tokens }: GpuRow, step: number, draw?: Draw): SequenceInput[] {
  const position = depth + (tokens === 1 ? step : 0);
  return Array.from({ length: batch }, (_, sequence) => ({
    tokens: new Uint32Array(tokens).fill(TOKEN),
    position,
    blockTable: tableOf(sequence, depth + tokens),
    attention: DENSE,
    output: "last",
    draw,
  }));
}

function tableOf(sequence: number, length: number): number[] {
  const blocks = Math.ceil((length + STEPS.gpu) / 16);
  return Array.from({ length: blocks }, (_, block) => sequence * blocks + block);
}

async function fill(backend: WebGpuBackend, { batch, depth, tokens }: GpuRow): Promise<void> {
  const chunk = backend.limits.maxBatchTokens;
  for (let sequence = 0; sequence < batch; sequence++) {
    for (let position = 0; position < depth; position += chunk) {
      await backend.forward([{
        tokens: new Uint32Array(Math.min(chunk, depth - position)).fill(TOKEN),
        position,
        blockTable: tableOf(sequence, depth + tokens),
        attention: DENSE,
        output: "none",
      }]);
    }
  }
}

/** `profile`, or why there is none. */
async function profileWherePossible(...step: Parameters<typeof profile>): Promise<Detail[]> {
  try {
    return await profile(...step);
  } catch (error) {
    if (!(error instanceof BackendError) || error.fatal) throw error;
    return [{ kernel: error.message }];
  }
}

/**
 * What a step is made of, by kernel, the longest first.
 *
 * @throws {BackendError} The device cannot time kernels.
 */
async function profile(backend: WebGpuBackend, batch: readonly SequenceInput[]): Promise<Detail[]> {
  const device = await openDevice();
  const peak = await readBandwidth(device.gpu);
  device.gpu.destroy();
  const runs = [];
  for (let run = 0; run < 3; run++) runs.push(await backend.profile(batch));
  const best = runs.sort((a, b) => sumOf(a).seconds - sumOf(b).seconds)[0] ?? [];
  const byKernel = new Map<string, KernelTime[]>();
  for (const time of best) byKernel.set(time.kernel, [...byKernel.get(time.kernel) ?? [], time]);
  const lines = [...byKernel].map(([kernel, times]) => detail(kernel, times, peak));
  lines.sort((a, b) => Number(b.microseconds) - Number(a.microseconds));
  return [
    { kernel: `reads at ${(peak / 1e9).toPrecision(3)} GB/s at the best`, peak_bytes: peak },
    detail("a whole step", best, peak),
    ...lines,
  ];
}

function sumOf(times: readonly KernelTime[]): { readonly seconds: number; readonly bytes: number } {
  return {
    seconds: times.reduce((sum, { seconds }) => sum + seconds, 0),
    bytes: times.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

function detail(kernel: string, times: readonly KernelTime[], peak: number): Detail {
  const { seconds, bytes } = sumOf(times);
  return {
    kernel,
    dispatches: times.length,
    microseconds: Math.round(seconds * 1e7) / 10,
    megabytes: Math.round(bytes / 1e4) / 100,
    share_of_peak: Math.round(1000 * bytes / seconds / peak) / 1000,
  };
}
