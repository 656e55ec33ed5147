/**
 * How weights lie in GPU memory: groups of 16 elements of a row, levels and scales in buffers of
 * their own, scales bit for bit those of the file. An element is `scale * level + minimum`; `repack.ts` writes it,
 * and the WGSL made here reads it, a vector of four elements at a time.
 */
import type { TensorType } from "../core/model/tensors.ts";

/** Elements of a group. */
export const GROUP = 16;

/**
 * Where scales come from: nowhere; a half for two groups, with a minimum that is a multiple of it;
 * halves of scale and minimum for two groups; for 16 groups two halves and a pair of bytes for every
 * two (Q4_K, Q5_K), or a half and a signed byte for each (Q6_K).
 */
export type ScaleLayout = "none" | "single" | "pair" | "pairs256" | "bytes256";

export interface PackedLayout {
  /** 32-bit words of two groups' levels. */
  readonly words: 4 | 5 | 6 | 8 | 16 | 32;
  readonly scales: ScaleLayout;
  /** What a level of 0 stands for, in scales, where that is fixed. */
  readonly zero: number;
}

export const PACKED: Readonly<Record<TensorType, PackedLayout>> = {
  F32: { words: 32, scales: "none", zero: 0 },
  F16: { words: 16, scales: "none", zero: 0 },
  BF16: { words: 16, scales: "none", zero: 0 },
  Q4_0: { words: 4, scales: "single", zero: -8 },
  Q4_1: { words: 4, scales: "pair", zero: 0 },
  Q5_0: { words: 5, scales: "single", zero: -16 },
  Q5_1: { words: 5, scales: "pair", zero: 0 },
  Q8_0: { words: 8, scales: "single", zero: 0 },
  Q4_K: { words: 4, scales: "pairs256", zero: 0 },
  Q5_K: { words: 5, scales: "pairs256", zero: 0 },
  Q6_K: { words: 6, scales: "bytes256", zero: -32 },
};

/** Words of 256 elements' scales in the two layouts of super-blocks. */
export const SUPER_WORDS = 5;

/** 32-bit words of so many elements, whole rows of 32. */
export const quantWords = (type: TensorType, elements: number): number =>
  elements / 32 * PACKED[type].words;

/** 32-bit words of the scales of so many elements; at least one, for no buffer is empty. */
export function scaleWords(type: TensorType, elements: number): number {
  switch (PACKED[type].scales) {
    case "none":
      return 1;
    case "single":
      return Math.ceil(elements / 64);
    case "pair":
      return elements / 32;
    case "pairs256":
    case "bytes256":
      return elements / 256 * SUPER_WORDS;
  }
}

/** The WGSL that reads groups of one tensor type from two buffers. */
export interface Decoder {
  /** WGSL type of the buffer of levels. */
  readonly quantsType: string;
  /** Functions that `scales` calls. */
  readonly functions: string;
  /** Statements that load a group's words under a name. */
  load(name: string, group: string): string;
  /** Vector `i` of 4: elements 4i to 4i + 3 of a loaded group, without scale and minimum. */
  levels(name: string, i: number): string;
  /**
   * The same vector as four signed bytes of a word, the minimum taken off where it is fixed; undefined
   * where levels are no integers.
   */
  readonly integers: ((name: string, i: number) => string) | undefined;
  /** Expression, a `vec2` of scale and minimum; undefined where levels are the elements. */
  readonly scales: ((group: string) => string) | undefined;
}

/** @param suffix Of the names `quants` and `scales`, where a kernel sees two matrices. */
export function decoder(type: TensorType, suffix = ""): Decoder {
  const { words, scales, zero } = PACKED[type];
  const { functions = "", expression } = SCALES[scales](suffix, zero);
  const { load, integers, ...levels } = LEVELS[type === "BF16" ? type : words];
  return {
    ...{ ...levels, functions, scales: expression },
    load: (name, group) => load(`quants${suffix}`, name, group),
    integers: integers && ((name, i) => lowered(integers(name, i), -zero)),
  };
}

/** Four unsigned levels minus `zero`, as signed bytes: no byte borrows from the next. */
const lowered = (word: string, zero: number): string => {
  if (zero === 0) return word;
  const zeros = `0x${zero.toString(16).padStart(2, "0").repeat(4)}u`;
  return `(((${word} | 0x80808080u) - ${zeros}) ^ 0x80808080u)`;
};

interface Levels
  extends Pick<Decoder, "quantsType" | "levels">, Partial<Pick<Decoder, "integers">> {
  readonly load: (quants: string, name: string, group: string) => string;
}

/** Two words a group: byte i of word j has elements 8j + i and 8j + 4 + i. */
const nibbles = (word: string, i: number): string => {
  const shifts = [0, 8, 16, 24].map((bits) => `${bits + 4 * (i & 1)}u`).join(", ");
  return `((vec4<u32>(${word}) >> vec4<u32>(${shifts})) & vec4<u32>(15u))`;
};

/** The same, as bytes. */
const nibbleBytes = (word: string, i: number): string =>
  `((${word} >> ${4 * (i & 1)}u) & 0x0f0f0f0fu)`;

/** `width` more bits of each element, from the lowest of `word` on. */
const highBits = (word: string, width: number, i: number): string => {
  const shifts = [0, 1, 2, 3].map((k) => `${width * (4 * i + k)}u`).join(", ");
  return `(((vec4<u32>(${word}) >> vec4<u32>(${shifts})) & vec4<u32>(${(1 << width) - 1}u)) << ` +
    "vec4<u32>(4u))";
};

/** `width` more bits of each element, as bytes: byte k takes them from a copy shifted to it. */
const highBytes = (word: string, width: number, i: number): string => {
  const bytes = [0, 1, 2, 3].map((k) => {
    const [from, to] = [width * (4 * i + k), 8 * k + 4];
    const shifted = to < from ? `${word} >> ${from - to}u` : `${word} << ${to - from}u`;
    return `((${shifted}) & ${((1 << width) - 1) * 2 ** to}u)`;
  });
  return `(${bytes.join(" | ")})`;
};

/** By words of two groups. */
const LEVELS: Readonly<Record<PackedLayout["words"] | "BF16", Levels>> = {
  4: {
    quantsType: "array<vec2<u32>>",
    load: (quants, name, group) => `let ${name} = ${quants}[${group}];`,
    levels: (name, i) => `vec4<f32>(${nibbles(`${name}[${i >> 1}]`, i)})`,
    integers: (name, i) => nibbleBytes(`${name}[${i >> 1}]`, i),
  },
  // Two groups have two words each, then share the word of the fifth bits.
  5: {
    quantsType: "array<u32>",
    load: (quants, name, group) => `
    let ${name}_at = ((${group}) >> 1u) * 5u;
    let ${name}_odd = (${group}) & 1u;
    let ${name} = vec2<u32>(
      ${quants}[${name}_at + 2u * ${name}_odd],
      ${quants}[${name}_at + 2u * ${name}_odd + 1u],
    );
    let ${name}_high = ${quants}[${name}_at + 4u] >> (16u * ${name}_odd);`,
    levels: (name, i) =>
      `vec4<f32>(${nibbles(`${name}[${i >> 1}]`, i)} | ${highBits(`${name}_high`, 1, i)})`,
    integers: (name, i) =>
      `(${nibbleBytes(`${name}[${i >> 1}]`, i)} | ${highBytes(`${name}_high`, 1, i)})`,
  },
  6: {
    quantsType: "array<u32>",
    load: (quants, name, group) => `
    let ${name}_at = (${group}) * 3u;
    let ${name} = vec2<u32>(${quants}[${name}_at], ${quants}[${name}_at + 1u]);
    let ${name}_high = ${quants}[${name}_at + 2u];`,
    levels: (name, i) =>
      `vec4<f32>(${nibbles(`${name}[${i >> 1}]`, i)} | ${highBits(`${name}_high`, 2, i)})`,
    integers: (name, i) =>
      `(${nibbleBytes(`${name}[${i >> 1}]`, i)} | ${highBytes(`${name}_high`, 2, i)})`,
  },
  8: {
    quantsType: "array<vec4<i32>>",
    load: (quants, name, group) => `let ${name} = ${quants}[${group}];`,
    levels: (name, i) =>
      `vec4<f32>((vec4<i32>(${name}[${i}]) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))`,
    integers: (name, i) => `bitcast<u32>(${name}[${i}])`,
  },
  16: {
    quantsType: "array<vec4<u32>>",
    load: (quants, name, group) => `
    let ${name}_0 = ${quants}[(${group}) * 2u];
    let ${name}_1 = ${quants}[(${group}) * 2u + 1u];`,
    levels: (name, i) => {
      const half = (k: number) => `unpack2x16float(${name}_${i >> 1}[${2 * (i & 1) + k}])`;
      return `vec4<f32>(${half(0)}, ${half(1)})`;
    },
  },
  BF16: {
    quantsType: "array<vec4<u32>>",
    load: (quants, name, group) => `
    let ${name}_0 = ${quants}[(${group}) * 2u];
    let ${name}_1 = ${quants}[(${group}) * 2u + 1u];`,
    levels: (name, i) => {
      const both = (k: number) => {
        const word = `${name}_${i >> 1}[${2 * (i & 1) + k}]`;
        return `${word} << 16u, ${word} & 0xffff0000u`;
      };
      return `bitcast<vec4<f32>>(vec4<u32>(${both(0)}, ${both(1)}))`;
    },
  },
  32: {
    quantsType: "array<vec4<f32>>",
    load: (quants, name, group) =>
      [0, 1, 2, 3].map((i) => `let ${name}_${i} = ${quants}[(${group}) * 4u + ${i}u];`).join("\n"),
    levels: (name, i) => `${name}_${i}`,
  },
};

interface Scales {
  readonly functions?: string;
  readonly expression: Decoder["scales"];
}

const SCALES: Readonly<Record<ScaleLayout, (suffix: string, zero: number) => Scales>> = {
  none: () => ({ expression: undefined }),
  single: (suffix, zero) => ({
    functions: `
fn scale_of${suffix}(pair: u32) -> vec2<f32> {
  return unpack2x16float(scales${suffix}[pair >> 1u])[pair & 1u] * vec2<f32>(1.0, ${zero}.0);
}
`,
    expression: (group) => `scale_of${suffix}((${group}) >> 1u)`,
  }),
  pair: (suffix) => ({
    expression: (group) => `unpack2x16float(scales${suffix}[(${group}) >> 1u])`,
  }),
  pairs256: (suffix) => ({
    functions: `
fn scale_of${suffix}(group: u32) -> vec2<f32> {
  let at = (group >> 4u) * ${SUPER_WORDS}u;
  let pair = scales${suffix}[at + 1u + ((group & 15u) >> 2u)] >> ((group & 2u) * 8u);
  return unpack2x16float(scales${suffix}[at]) * vec2<f32>(f32(pair & 255u), -f32((pair >> 8u) & 255u));
}
`,
    expression: (group) => `scale_of${suffix}(${group})`,
  }),
  bytes256: (suffix, zero) => ({
    functions: `
fn scale_of${suffix}(group: u32) -> vec2<f32> {
  let at = (group >> 4u) * ${SUPER_WORDS}u;
  let byte = scales${suffix}[at + 1u + ((group & 15u) >> 2u)] >> ((group & 3u) * 8u);
  let level = f32(bitcast<i32>(byte << 24u) >> 24u);
  return unpack2x16float(scales${suffix}[at]).x * level * vec2<f32>(1.0, ${zero}.0);
}
`,
    expression: (group) => `scale_of${suffix}(${group})`,
  }),
};
