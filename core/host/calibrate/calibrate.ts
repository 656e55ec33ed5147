/** Makes a calibration: reads text, sketches the keys, and measures what share of attention to keep. */
import type { Backend, KeyMoments, Pruning } from "../../engine/backend.ts";
import { LENGTHS, MIN_BLOCKS } from "../../entropic/pruning.ts";
import { DIVERGENCE_BOUND } from "../../entropic/safeguards.ts";
import type { Tokenizer } from "../../model/tokenizer.ts";
import type { Calibration } from "./calibration.ts";
import { chooseMass } from "./choose_mass.ts";
import { prefill } from "./compare.ts";
import { keySketch } from "./key_sketch.ts";
import { CALIBRATION_TEXT } from "./text.ts";

/** Tokens that are read at once, and all that a quick calibration reads. */
const SECTION = 1024;
/** Longest context that a sketch is made for: longer ones would blur it for those that are usual. */
const CONTEXT = 8192;

export interface CalibrateOptions {
  /** `modelFingerprint` of the model. */
  readonly model: string;
  /** Only a sketch, from little text: seconds, instead of minutes. */
  readonly quick?: boolean;
  /** Most nats of divergence; `DIVERGENCE_BOUND` where left out. */
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
  const { bound = DIVERGENCE_BOUND, lengths = LENGTHS, minBlocks = MIN_BLOCKS, log } = options;
  const { pruning } = backend;
  if (pruning === undefined) {
    throw new TypeError(`Cannot calibrate: backend ${backend.describe().kind} attends densely`);
  }
  const tokens = texts.map((text) => tokenizer.encode(text));
  const moments = await gatherMoments(backend, pruning, options.quick ? firstOf(tokens) : tokens);
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
 * Reads the texts in sections, each spread over a whole context: a key's slow rotations never average
 * out, so moments of the first positions alone mislead at later ones (KL .026 in place of .006).
 */
async function gatherMoments(
  backend: Backend,
  pruning: Pruning,
  texts: readonly Uint32Array[],
): Promise<KeyMoments> {
  const longest = Math.max(0, ...texts.map(({ length }) => length));
  if (longest === 0) throw new RangeError("Cannot calibrate: the texts are empty");
  const size = Math.min(SECTION, backend.limits.contextLength, longest);
  const context = Math.min(CONTEXT, backend.config.contextLength);
  await pruning.gather(true, Math.max(1, Math.floor(context / size)));
  for (const text of texts) {
    for (let start = 0; start < text.length; start += size) {
      await prefill(backend, text.subarray(start, start + size), 0);
    }
  }
  const moments = await pruning.gather(false);
  if (moments === undefined) throw new Error("Cannot calibrate: the backend gathered nothing");
  return moments;
}

/** A section of the first text. */
const firstOf = (texts: readonly Uint32Array[]) =>
  texts.slice(0, 1).map((text) => text.subarray(0, SECTION));

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
