/** Keeps calibrations on disk, beside their models. */
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import process from "node:process";
import { type Calibration, decodeCalibration, encodeCalibration } from "./calibration.ts";
import type { SketchShape } from "./key_sketch.ts";

/** Where the calibration of a model lies, given the path of its (first) file. */
export function calibrationPath(modelPath: string): string {
  return `${modelPath}.calibration.json`;
}

/**
 * @param model Fingerprint of the model that it is wanted for.
 * @param log Told why a calibration that is there cannot be used.
 * @returns Nothing where none is there, or none that fits: then it is time for a new one.
 */
export async function loadCalibration(
  path: string,
  model: string,
  shape: SketchShape,
  log?: (line: string) => void,
): Promise<Calibration | undefined> {
  try {
    await checkSize(path, shape);
    return decodeCalibration(await readFile(path, "utf8"), model, shape);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (!isMissing) log?.(`${path}: ${(error as Error).message}`);
    return undefined;
  }
}

/** Keeps whatever may lie there from being read as a whole: nothing larger is a calibration. */
async function checkSize(path: string, { layers, kvHeads, headSize }: SketchShape): Promise<void> {
  // Two maps with at most as many dimensions as a head, 16 bits an element in base64; then the rest.
  const most = 8 * layers * kvHeads * headSize ** 2 + 2 ** 16;
  const { size } = await stat(path);
  if (size <= most) return;
  throw new RangeError(
    `Cannot read calibration: it has ${size} bytes, expected are ${most} at most`,
  );
}

/**
 * Writes a calibration, as a whole or not at all.
 *
 * @throws {Error} The folder may not be written.
 */
export async function saveCalibration(path: string, calibration: Calibration): Promise<void> {
  const draft = `${path}.${process.pid}.part`;
  try {
    await writeFile(draft, encodeCalibration(calibration));
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
