/**
 * What pruned attention has to know of a model: a sketch of its keys, and how much of the attention to
 * keep at each context length. Kept as JSON beside the model, with the model's fingerprint in it.
 */
import type { KeySketch } from "../../engine/backend.ts";
import type { MassByLength } from "../../entropic/pruning.ts";
import { LEAST_BOUND } from "../../entropic/safeguards.ts";
import type { SketchShape } from "./key_sketch.ts";
import { type PackedRows, packFloats, packRows, unpackFloats, unpackRows } from "./packed.ts";

export interface Calibration {
  /** `modelFingerprint` of the model it is for. */
  readonly model: string;
  readonly sketch: KeySketch;
  /** Empty where it was not measured. */
  readonly mass: MassByLength;
  /** Nats of divergence from dense that `mass` keeps to. */
  readonly bound?: number;
}

/** Changes with the format, and with whatever makes older sketches worse than newer ones. */
const VERSION = 1;

/** The JSON of a calibration. */
interface Stored {
  readonly version: number;
  readonly model: string;
  readonly bound: number | null;
  readonly mass: MassByLength;
  readonly dimensions: number;
  readonly keyMap: PackedRows;
  readonly keyOffset: string;
  readonly queryMap: PackedRows;
}

export function encodeCalibration({ model, sketch, mass, bound }: Calibration): string {
  const { dimensions, keyMap, keyOffset, queryMap } = sketch;
  const headSize = keyMap.length / keyOffset.length;
  const stored: Stored = {
    version: VERSION,
    model,
    bound: bound ?? null,
    mass,
    dimensions,
    keyMap: packRows(keyMap, headSize),
    keyOffset: packFloats(keyOffset),
    queryMap: packRows(queryMap, headSize),
  };
  return JSON.stringify(stored);
}

/**
 * @param model The fingerprint that it must have.
 * @throws {SyntaxError} The text is no calibration, or of another version.
 * @throws {RangeError} It is for another model.
 */
export function decodeCalibration(text: string, model: string, shape: SketchShape): Calibration {
  const stored = readStored(JSON.parse(text));
  if (stored.model !== model) {
    throw new RangeError(
      `Cannot use calibration: it is for model ${short(stored.model)}, this one is ${short(model)}`,
    );
  }
  const { dimensions, mass, bound } = stored;
  const rows = shape.layers * shape.kvHeads * dimensions;
  return {
    model,
    mass,
    ...(bound !== null && { bound }),
    sketch: {
      dimensions,
      keyMap: unpackRows(stored.keyMap, rows, shape.headSize),
      keyOffset: unpackFloats(stored.keyOffset, rows),
      queryMap: unpackRows(stored.queryMap, rows, shape.headSize),
    },
  };
}

const short = (fingerprint: string) => fingerprint.slice(0, 12);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const isPacked = (value: unknown): value is PackedRows =>
  isObject(value) && typeof value.scales === "string" && typeof value.values === "string";

const isShare = (one: unknown): one is MassByLength[number] =>
  isObject(one) && Number.isInteger(one.length) && typeof one.mass === "number" &&
  one.mass > 0 && one.mass <= 1;

const isMass = (value: unknown): value is MassByLength =>
  Array.isArray(value) && value.every(isShare) &&
  value.every(({ length }, i) => i === 0 || length > (value[i - 1]?.length ?? 0));

const isBound = (value: unknown): value is number =>
  typeof value === "number" && value >= LEAST_BOUND && value < Infinity;

function readStored(value: unknown): Stored {
  const check = (holds: boolean, what: string) => {
    if (!holds) throw new SyntaxError(`Cannot read calibration: ${what}`);
  };
  if (!isObject(value)) throw new SyntaxError("Cannot read calibration: it is no object");
  check(value.version === VERSION, `version is ${value.version}, readable is ${VERSION}`);
  check(typeof value.model === "string", "model is no text");
  check(
    value.bound === null || isBound(value.bound),
    `bound is ${value.bound}, allowed are finite numbers from ${LEAST_BOUND} on`,
  );
  check(isMass(value.mass), "mass is no list of ascending lengths and their shares");
  check(
    typeof value.dimensions === "number" && value.dimensions > 0 && value.dimensions % 8 === 0,
    `dimensions are ${value.dimensions}, allowed are multiples of 8`,
  );
  check(isPacked(value.keyMap) && isPacked(value.queryMap), "a map is missing");
  check(typeof value.keyOffset === "string", "keyOffset is missing");
  return value as unknown as Stored;
}
