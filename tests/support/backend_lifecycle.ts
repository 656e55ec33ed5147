/** What every backend does besides computing: loading, refusing, going away. */
import {
  assert,
  assertEquals,
  assertFalse,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import type { Backend, BackendLimits } from "../../core/engine/backend.ts";
import { BackendError } from "../../core/errors.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import type { ModelFiles } from "../../core/model/tensors.ts";
import { blocks, part, rowsOf, text } from "./backend_steps.ts";
import { tinyModel, type TinyModelOptions } from "./tiny_model.ts";

/** A tiny model, opened. */
export async function tinyFiles(options: TinyModelOptions = {}): Promise<ModelFiles> {
  return (await openModel([new MemorySource("tiny.gguf", tinyModel(options))])).files;
}

/** The limits that `assertRefusesAndComputesOn` wants. */
export const NARROW: Partial<BackendLimits> = {
  contextLength: 64,
  maxBatchTokens: 32,
  maxOutputRows: 4,
  kvBlocks: 64,
};

/** @param backend With the limits `NARROW`. */
export async function assertRefusesAndComputesOn(backend: Backend): Promise<void> {
  const { vocabularySize } = backend.config;
  const good = part(text(3), 0, blocks(1));
  const bad = {
    "no new tokens": part([], 0, blocks(1)),
    "36 new tokens": part(text(33), 0, blocks(3)),
    "6 output rows": part(text(5), 0, blocks(1), "all"),
    "positions 62 to 65": part(text(3), 62, blocks(5)),
    "positions -1 to 2": part(text(3), -1, blocks(1)),
    "positions 0.5 to 3.5": part(text(3), 0.5, blocks(1)),
    "block table has 1 of 2": part(text(17), 0, blocks(1)),
    "KV block is 64": part(text(3), 0, [64]),
    "KV block is -1": part(text(3), 0, [-1]),
    [`token id is ${vocabularySize}`]: part([1, vocabularySize], 0, blocks(1)),
    "token id is 1.5": part([1.5], 0, blocks(1)),
    "attention plan is mass": {
      ...good,
      attention: { kind: "mass", mass: 0.9, minBlocks: 1 } as const,
    },
  };
  const before = await rowsOf(backend, await backend.forward([good]));
  for (const [message, sequence] of Object.entries(bad)) {
    const error = await assertRejects(() => backend.forward([good, sequence]), RangeError);
    assertStringIncludes(error.message, message);
  }
  await assertRejects(() => backend.logits(1), RangeError, "row is 1, the latest step has 1");
  await assertRejects(() => backend.copyBlocks([[0, 64]]), RangeError, "KV block is 64");
  await assertRejects(() => backend.readBlocks([64]), RangeError, "KV block is 64");
  assertEquals(await rowsOf(backend, await backend.forward([good])), before);
  assertEquals(await backend.forward([]), { rows: [], attention: [] });
  const gone = AbortSignal.abort(new Error("gone"));
  await assertRejects(() => backend.forward([good], gone), Error, "gone");
}

export async function assertGoneAfterDispose(backend: Backend): Promise<void> {
  await backend.dispose();
  await backend.dispose();
  const error = await assertRejects(
    () => backend.forward([part(text(3), 0, blocks(1))]),
    BackendError,
    "disposed",
  );
  assert(error.fatal);
}

/** @param open Opens a backend that reports there. */
export async function assertReportsProgress(
  open: (onProgress: (loaded: number, total: number) => void) => Promise<Backend>,
): Promise<void> {
  const seen: [number, number][] = [];
  const backend = await open((...progress) => seen.push(progress));
  const [loaded, total] = seen.at(-1)!;
  assertEquals(loaded, total);
  assert(seen.every(([bytes], i) => i === 0 || bytes > seen[i - 1]![0]));
  await backend.dispose();
}

/** @param open Opens a backend on files; those that it gets have a NaN among the weights. */
export async function assertShowsNaN(
  open: (files: ModelFiles) => Promise<Backend>,
): Promise<void> {
  const model = tinyModel({ type: "Q8_0" });
  const { files } = await openModel([new MemorySource("tiny.gguf", model)]);
  const norm = files.tensors.get("blk.1.ffn_norm.weight")!;
  new DataView(model.buffer).setFloat32(norm.offset + 4 * 11, NaN, true);
  const backend = await open(files);
  const { rows: [row] } = await backend.forward([part(text(3), 0, blocks(1))]);
  assertFalse(Number.isFinite(row!.logZ));
  await backend.dispose();
}
