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
  const kept = path === undefined ? undefined : await find(path, backend, model, needs);
  if (kept !== undefined) return { backend, calibration: kept };
  const made = wanted ? await make(backend, model, needs) : undefined;
  return { backend, ...(made && { calibration: made }) };
}

/** Loaded here, for most engines need none of it, and edge hosts have no files. */
const tools = () => import("./calibrate/mod.ts");

/** Sets the sketch that is kept. One that the backend cannot use is as good as none. */
async function find(
  path: string,
  backend: Backend,
  { files }: OpenedModel,
  { log }: CalibrationNeeds,
): Promise<Calibration | undefined> {
  const { applyCalibration, calibrationPath, loadCalibration, modelFingerprint } = await tools();
  const fingerprint = await modelFingerprint(files);
  const kept = await loadCalibration(calibrationPath(path), fingerprint, files.config, log);
  try {
    if (kept !== undefined) await applyCalibration(backend, kept);
    return kept;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    log(`${calibrationPath(path)}: ${error.message}`);
    return undefined;
  }
}

/**
 * A sketch from a little text: seconds. How much to keep is left to defaults and the safeguards. None
 * where the model's shape allows none: attention is dense then, and the engine says so.
 */
async function make(
  backend: Backend,
  { files, metadata }: OpenedModel,
  { path, log }: CalibrationNeeds,
): Promise<Calibration | undefined> {
  const { calibrate, calibrationPath, modelFingerprint, saveCalibration } = await tools();
  const { tokenizerFromGguf } = await import("../model/tokenizer_gguf.ts");
  const { createTokenizer } = await import("../../wasm/tokenizer.ts");
  const tokenizer = await createTokenizer(tokenizerFromGguf(metadata));
  const fingerprint = await modelFingerprint(files);
  const warn = ({ message }: Error) => log(`Calibration: ${message}`);
  try {
    const options = { model: fingerprint, quick: true, log };
    const calibration = await calibrate(backend, tokenizer, undefined, options);
    if (path !== undefined) await saveCalibration(calibrationPath(path), calibration).catch(warn);
    return calibration;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    warn(error);
    return undefined;
  }
}
