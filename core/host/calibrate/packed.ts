/** Matrices of floats as text: 16 bits an element with a scale for each row, in base64. */

/** Rows of floats, packed. Parts are base64 of little-endian values. */
export interface PackedRows {
  /** Float32, shape [rows]: of an element over its integer. */
  readonly scales: string;
  /** Int16, shape [rows][columns]. */
  readonly values: string;
}

const LARGEST = 32767;

/** @param rows Shape [n][columns]. */
export function packRows(rows: Float32Array, columns: number): PackedRows {
  const scales = new Float32Array(rows.length / columns);
  const values = new Int16Array(rows.length);
  for (let row = 0; row < scales.length; row++) {
    const from = rows.subarray(row * columns, (row + 1) * columns);
    const most = from.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const scale = Math.fround(most / LARGEST);
    scales[row] = scale;
    for (let i = 0; i < columns; i++) {
      values[row * columns + i] = scale === 0 ? 0 : Math.round((from[i] as number) / scale);
    }
  }
  return { scales: packFloats(scales), values: toBase64(new Uint8Array(values.buffer)) };
}

/** @throws {SyntaxError} Not what `packRows` gives, of another shape, or not all finite. */
export function unpackRows(packed: PackedRows, rows: number, columns: number): Float32Array {
  const scales = unpackFloats(packed.scales, rows);
  const values = new Int16Array(fromBase64(packed.values, 2 * rows * columns).buffer);
  return checkFinite(
    Float32Array.from(values, (value, i) => value * (scales[Math.floor(i / columns)] ?? NaN)),
  );
}

export function packFloats(values: Float32Array): string {
  return toBase64(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
}

/** @throws {SyntaxError} Not what `packFloats` gives, of another length, or not all finite. */
export function unpackFloats(packed: string, length: number): Float32Array {
  return checkFinite(new Float32Array(fromBase64(packed, 4 * length).buffer));
}

function checkFinite<Values extends Float32Array>(values: Values): Values {
  if (values.every(Number.isFinite)) return values;
  throw new SyntaxError("Cannot read packed floats: not all are finite");
}

/** Bytes that go through one call, which has so many arguments. */
const CHUNK = 8192;

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let start = 0; start < bytes.length; start += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(start, start + CHUNK));
  }
  return btoa(text);
}

function fromBase64(packed: string, length: number): Uint8Array<ArrayBuffer> {
  let text: string;
  try {
    text = atob(packed);
  } catch (cause) {
    throw new SyntaxError("Cannot read packed numbers: they are no base64", { cause });
  }
  if (text.length !== length) {
    throw new SyntaxError(
      `Cannot read packed numbers: they have ${text.length} bytes, expected are ${length}`,
    );
  }
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
