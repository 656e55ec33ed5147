/**
 * The one place where a fresh backend gets its model's calibration, and with it the ability to prune:
 * from beside the model, else, where the engine is to prune, one made in a hurry and kept there.
 */
import type { Backend } from "../engine/backend.ts";
import type { AttentionPolicy } from "../entropic/pruning.ts";
import type { OpenedModel } from "../model/gguf/open_model.ts";
import type { Calibration } from "./calibrate/mod.ts";

export interface CalibratedBackend {
  readonly backend: Backend;
  /** Missing where attention can only be dense. */
  readonly calibration?: Calibration;
}

export interface CalibrationNeeds {
  /** Policy of requests that name none. */
  readonly policy: AttentionPolicy;
  /** The model's first file, where it lies in files. */
  readonly path: string | undefined;
  readonly log: (line: string) => void;
}

/** @throws {ModelError} The model cannot be read. */
export async function calibrateBackend(
  backend: Backend,
  model: OpenedModel,
  needs: CalibrationNeeds,
): Promise<CalibratedBackend> {
  const { policy, path } = needs;
  const wanted = policy !== "off";
  if (backend.pruning === undefined || (!wanted && path === undefined)) return { backend };
  const kept = path === undefined ? undefined : await find(path, model, needs);
  if (kept !== undefined) {
    await backend.pruning.useSketch(kept.sketch);
    return { backend, calibration: kept };
  }
  return wanted ? { backend, calibration: await make(backend, model, needs) } : { backend };
}

/** Loaded here, for most engines need none of it, and edge hosts have no files. */
const tools = () => import("./calibrate/mod.ts");

async function find(
  path: string,
  { files }: OpenedModel,
  { log }: CalibrationNeeds,
): Promise<Calibration | undefined> {
  const { calibrationPath, loadCalibration, modelFingerprint } = await tools();
  const fingerprint = await modelFingerprint(files);
  return await loadCalibration(calibrationPath(path), fingerprint, files.config, log);
}

/** A sketch from a little text: seconds. How much to keep is left to defaults and the safeguards. */
async function make(
  backend: Backend,
  { files, metadata }: OpenedModel,
  { path, log }: CalibrationNeeds,
): Promise<Calibration> {
  const { calibrate, calibrationPath, modelFingerprint, saveCalibration } = await tools();
  const { tokenizerFromGguf } = await import("../model/tokenizer_gguf.ts");
  const { createTokenizer } = await import("../../wasm/tokenizer.ts");
  const tokenizer = await createTokenizer(tokenizerFromGguf(metadata));
  const fingerprint = await modelFingerprint(files);
  const options = { model: fingerprint, quick: true, log };
  const calibration = await calibrate(backend, tokenizer, undefined, options);
  if (path !== undefined) {
    await saveCalibration(calibrationPath(path), calibration).catch((error) => {
      log(`Cannot keep the calibration: ${error.message}`);
    });
  }
  return calibration;
}
