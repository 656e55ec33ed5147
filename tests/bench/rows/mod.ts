/** The rows of `deno task bench`. */
import type { Row } from "../row.ts";
import { BATCH_ROWS } from "./batch.ts";
import { bun } from "./bun.ts";
import { DEPTH_ROWS } from "./depth.ts";
import { engineOverhead } from "./engine_overhead.ts";
import { FORMAT_ROWS } from "./formats.ts";
import { GPU_ROWS } from "./gpu.ts";
import { GROWTH_ROWS } from "./growth.ts";
import { memory } from "./memory.ts";
import { SPEED_ROWS } from "./speed.ts";
import { START_ROWS } from "./start.ts";

export const ROWS: readonly Row[] = [
  ...SPEED_ROWS,
  ...BATCH_ROWS,
  ...DEPTH_ROWS,
  ...FORMAT_ROWS,
  ...START_ROWS,
  memory,
  engineOverhead,
  bun,
  ...GROWTH_ROWS,
  ...GPU_ROWS,
];

/** What runs when no row is named: a few minutes. */
export const DEFAULT_ROWS: readonly string[] = [
  "decode",
  "decode-2t",
  "decode-wllama",
  "prefill",
  "batch-8",
  "load",
  "cold-start",
  "engine-overhead",
  "bun",
];

/**
 * The rows of these names, in the order given; `all` stands for every row.
 *
 * @throws {RangeError} There is no such row.
 */
export function findRows(names: readonly string[]): Row[] {
  return names.flatMap((name) => {
    if (name === "all") return ROWS;
    const row = ROWS.find((row) => row.name === name);
    if (row !== undefined) return [row];
    const allowed = ROWS.map(({ name }) => name).join(", ");
    throw new RangeError(`Cannot run row: current value is ${name}, allowed are ${allowed}, all`);
  });
}
