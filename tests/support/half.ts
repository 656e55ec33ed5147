/** IEEE 754 half precision, for machines whose `DataView` has no `setFloat16` yet (Node 20). */

/** The bits of the nearest half, ties to even. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | roundEven(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  // A mantissa that rounds up to 2 carries into the exponent, as the format wants it.
  return sign | (((exponent + 15) << 10) + roundEven((size / 2 ** exponent - 1) * 1024));
}

/** Of all 16 bits: models have millions of halves. */
const VALUES = Float32Array.from({ length: 2 ** 16 }, (_, bits) => decode(bits));

/** The value that 16 bits stand for. */
export const fromHalf = (bits: number): number => VALUES[bits] ?? NaN;

function decode(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa === 0 ? sign * Infinity : NaN;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
