import { assertEquals, assertStringIncludes } from "@std/assert";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import type { Calibration } from "./calibration.ts";
import { calibrationPath, loadCalibration, saveCalibration } from "./calibration_file.ts";

const SHAPE = { layers: 1, kvHeads: 1, headSize: 8 };
const MODEL = "ab".repeat(32);
const CALIBRATION: Calibration = {
  model: MODEL,
  mass: [{ length: 1024, mass: 0.9 }],
  sketch: {
    dimensions: 8,
    keyMap: new Float32Array(64).fill(1),
    keyOffset: new Float32Array(8),
    queryMap: new Float32Array(64).fill(1),
  },
};

Deno.test("loadCalibration finds what saveCalibration left, and nothing else in the folder", async () => {
  await using folder = await temporaryDirectory();
  const path = calibrationPath(join(folder.path, "model.gguf"));
  assertEquals(await loadCalibration(path, MODEL, SHAPE), undefined);
  await saveCalibration(path, CALIBRATION);
  assertEquals((await loadCalibration(path, MODEL, SHAPE))?.mass, CALIBRATION.mass);
  assertEquals(await readdir(folder.path), ["model.gguf.calibration.json"]);
});

Deno.test("loadCalibration says why it refuses one, so that a new one is made", async () => {
  await using folder = await temporaryDirectory();
  const path = calibrationPath(join(folder.path, "model.gguf"));
  const lines: string[] = [];
  const load = (model: string) => loadCalibration(path, model, SHAPE, (line) => lines.push(line));
  assertEquals(await load(MODEL), undefined);
  assertEquals(lines, []);
  await saveCalibration(path, CALIBRATION);
  assertEquals(await load("cd".repeat(32)), undefined);
  await writeFile(path, "{");
  assertEquals(await load(MODEL), undefined);
  await writeFile(path, " ".repeat(70_000));
  assertEquals(await load(MODEL), undefined);
  assertEquals(lines.length, 3);
  assertStringIncludes(lines[0] ?? "", "it is for model abababababab");
  assertStringIncludes(lines[2] ?? "", "it has 70000 bytes, expected are");
});
