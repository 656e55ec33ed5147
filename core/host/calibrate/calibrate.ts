/** Makes a calibration: reads text, sketches the keys, and measures what share of attention to keep. */
import type { Backend } from "../../engine/backend.ts";
import { LENGTHS, MIN_BLOCKS } from "../../entropic/pruning.ts";
import type { Tokenizer } from "../../model/tokenizer.ts";
import type { Calibration } from "./calibration.ts";
import { chooseMass } from "./choose_mass.ts";
import { prefill } from "./compare.ts";
import { keySketch } from "./key_sketch.ts";
import { CALIBRATION_TEXT } from "./text.ts";

/** Nats of divergence from dense attention that pruning may cost, in the mean. */
export const DEFAULT_BOUND = 0.02;
/** Tokens that a quick calibration reads. */
const QUICK_TOKENS = 1024;

export interface CalibrateOptions {
  /** `modelFingerprint` of the model. */
  readonly model: string;
  /** Only a sketch, from little text: seconds, instead of minutes. */
  readonly quick?: boolean;
  /** Most nats of divergence; `DEFAULT_BOUND` where left out. */
  readonly bound?: number;
  /** Context lengths to choose a share for, ascending; `LENGTHS` where left out. */
  readonly lengths?: readonly number[];
  /** Blocks read at least; `MIN_BLOCKS` where left out. */
  readonly minBlocks?: number;
  /** Of a key's code. */
  readonly dimensions?: number;
  /** Takes lines for people. */
  readonly log?: (line: string) => void;
}

/**
 * Leaves the backend with the sketch set, and all its KV content void. No other step may run
 * meanwhile.
 *
 * @param texts What the model is going to read, or like it; own text where left out.
 * @throws {TypeError} The backend cannot prune.
 * @throws {RangeError} The texts are empty.
 */
export async function calibrate(
  backend: Backend,
  tokenizer: Tokenizer,
  texts: readonly string[] = [CALIBRATION_TEXT],
  options: CalibrateOptions,
): Promise<Calibration> {
  const { bound = DEFAULT_BOUND, lengths = LENGTHS, minBlocks = MIN_BLOCKS, log } = options;
  const { pruning } = backend;
  if (pruning === undefined) {
    throw new TypeError(`Cannot calibrate: backend ${backend.describe().kind} attends densely`);
  }
  const most = Math.min(backend.limits.contextLength, options.quick ? QUICK_TOKENS : Infinity);
  const tokens = texts.map((text) => tokenizer.encode(text)).filter(({ length }) => length > 0);
  await pruning.gather(true);
  for (const text of tokens) await prefill(backend, text.subarray(0, most), 0);
  const moments = await pruning.gather(false);
  if (moments === undefined || moments.tokens === 0) {
    throw new RangeError("Cannot calibrate: the texts are empty");
  }
  const sketch = keySketch(moments, backend.config, options.dimensions);
  log?.(`sketched the keys of ${moments.tokens} tokens in ${sketch.dimensions} dimensions`);
  await pruning.useSketch(sketch);
  const { model } = options;
  if (options.quick) return { model, sketch, mass: [] };
  const mass = await chooseMass(backend, tokens, {
    bound,
    lengths: lengths.filter((length) => length <= backend.limits.contextLength),
    minBlocks,
    ...(log && { log }),
  });
  return { model, sketch, mass, bound };
}

/**
 * Sets a calibration's sketch. All KV content is void afterwards.
 *
 * @throws {TypeError} The backend cannot prune.
 */
export async function applyCalibration(backend: Backend, { sketch }: Calibration): Promise<void> {
  if (backend.pruning === undefined) {
    throw new TypeError(`Cannot prune: backend ${backend.describe().kind} attends densely`);
  }
  await backend.pruning.useSketch(sketch);
}
