import { assert, assertEquals } from "@std/assert";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openModel } from "../model/gguf/open_model.ts";
import { MemorySource } from "../model/memory_source.ts";
import { ScriptedBackend } from "../../tests/support/scripted_backend.ts";
import { temporaryDirectory } from "../../tests/support/temporary_directory.ts";
import { tinyModel } from "../../tests/support/tiny_model.ts";
import { calibrateBackend } from "./calibrated_backend.ts";
import {
  type Calibration,
  calibrationPath,
  encodeCalibration,
  modelFingerprint,
} from "./calibrate/mod.ts";

const model = await openModel([new MemorySource("tiny.gguf", tinyModel())]);
const { layers, kvHeads, headSize } = model.files.config;
const rows = layers * kvHeads * 8;
const CALIBRATION: Calibration = {
  model: await modelFingerprint(model.files),
  sketch: {
    dimensions: 8,
    keyMap: new Float32Array(rows * headSize),
    keyOffset: new Float32Array(rows),
    queryMap: new Float32Array(rows * headSize),
  },
  mass: [{ length: 1024, mass: 0.9 }],
  bound: 0.01,
};

const needs = (path: string | undefined, lines: string[] = []) => ({
  policy: "off" as const,
  path,
  log: (line: string) => void lines.push(line),
});

Deno.test("calibrateBackend applies the calibration beside the model", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "tiny.gguf");
  await writeFile(calibrationPath(path), encodeCalibration(CALIBRATION));
  const backend = new ScriptedBackend({ prunes: false });
  const { calibration } = await calibrateBackend(backend, model, needs(path));
  assertEquals(calibration?.mass, CALIBRATION.mass);
  assertEquals(calibration?.bound, 0.01);
  assert(backend.describe().prunes);
});

Deno.test("calibrateBackend leaves another model's calibration alone, and says so", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "tiny.gguf");
  const other = { ...CALIBRATION, model: "0".repeat(64) };
  await writeFile(calibrationPath(path), encodeCalibration(other));
  const backend = new ScriptedBackend({ prunes: false });
  const lines: string[] = [];
  const { calibration } = await calibrateBackend(backend, model, needs(path, lines));
  assertEquals([calibration, backend.describe().prunes, lines.length], [undefined, false, 1]);
});

Deno.test("calibrateBackend takes a sketch that the backend cannot use for none, and says so", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "tiny.gguf");
  await writeFile(calibrationPath(path), encodeCalibration(CALIBRATION));
  const backend = new ScriptedBackend({ prunes: false });
  const pruning = {
    gather: () => Promise.resolve(undefined),
    useSketch: () => Promise.reject(new RangeError("Cannot use key sketch: dimensions is 8")),
  };
  Object.defineProperty(backend, "pruning", { value: pruning });
  const lines: string[] = [];
  assertEquals(await calibrateBackend(backend, model, needs(path, lines)), { backend });
  assertEquals(lines, [`${calibrationPath(path)}: Cannot use key sketch: dimensions is 8`]);
});

Deno.test("calibrateBackend makes none where attention is off, or can only be dense", async () => {
  await using directory = await temporaryDirectory();
  for (const path of [undefined, join(directory.path, "tiny.gguf")]) {
    const backend = new ScriptedBackend({ prunes: false });
    assertEquals(await calibrateBackend(backend, model, needs(path)), { backend });
  }
  const dense = new ScriptedBackend();
  const wanted = { ...needs(undefined), policy: "mass" as const };
  assertEquals(await calibrateBackend(dense, model, wanted), { backend: dense });
});

Deno.test("calibrateBackend leaves attention dense where the keys cannot be sketched", async () => {
  // The scripted backend gathers no keys at all.
  const backend = new ScriptedBackend({ prunes: false });
  const lines: string[] = [];
  const wanted = { ...needs(undefined, lines), policy: "mass" as const };
  assertEquals(await calibrateBackend(backend, model, wanted), { backend });
  assertEquals([backend.describe().prunes, lines.length], [false, 1]);
  assert(lines[0]?.includes("no token was gathered"), lines[0]);
});
