/**
 * What a kernel is: WGSL made from typed parameters, and the list of what it is bound to, from which
 * both the shader's declarations and the bind group's layout follow.
 */

/** A buffer that a kernel sees. */
export interface Binding {
  readonly name: string;
  /** WGSL type of the whole buffer, for example `array<f32>`. */
  readonly type: string;
  readonly access: "read" | "write" | "uniform";
}

export interface Kernel {
  /** Names the kernel and its parameters; kernels of one name are the same. */
  readonly name: string;
  readonly bindings: readonly Binding[];
  /** Types, functions and the entry point `main`; without the declarations of the bindings. */
  readonly code: string;
}

export const read = (name: string, type: string): Binding => ({ name, type, access: "read" });
export const write = (name: string, type: string): Binding => ({ name, type, access: "write" });
export const uniform = (name: string, type: string): Binding => ({ name, type, access: "uniform" });

const SPACES = {
  read: "storage, read",
  write: "storage, read_write",
  uniform: "uniform",
} as const;

/** The whole shader. */
export function shaderOf({ bindings, code }: Kernel): string {
  const declarations = bindings.map(({ name, type, access }, i) =>
    `@group(0) @binding(${i}) var<${SPACES[access]}> ${name}: ${type};`
  );
  return `${declarations.join("\n")}\n${code}`;
}

/** `text` for 0 to `count` - 1, one a line: loops that have to be unrolled. */
export function unroll(count: number, text: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => text(i)).join("\n");
}

/** Which of a step's tokens a kernel runs over. */
export const STEP = `
struct Step {
  /** Tokens, or output rows. */
  count: u32,
};
`;

/** First row of a part of a matrix, and how many it has. */
export const PART = `
struct Part {
  first: u32,
  rows: u32,
};
`;
