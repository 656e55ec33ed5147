import { assertEquals } from "@std/assert";
import type { Backend, SequenceInput } from "../../../core/engine/backend.ts";
import { DENSE } from "../../../core/engine/backend.ts";
import { divide } from "./divide.ts";

/** A backend that only notes which blocks it is asked about. */
function noting(): { backend: Backend; blocks: number[] } {
  const blocks: number[] = [];
  const backend = {
    limits: { kvBlocks: 20 },
    forward: (batch: readonly SequenceInput[]) => {
      blocks.push(...batch.flatMap(({ blockTable }) => Array.from(blockTable)));
      return Promise.resolve({ rows: [], attention: [] });
    },
    logits: () => Promise.resolve(new Float32Array(1)),
    copyBlocks: (pairs: readonly (readonly [number, number])[]) => {
      blocks.push(...pairs.flat());
      return Promise.resolve();
    },
  };
  return { backend: backend as unknown as Backend, blocks };
}

const INPUT = {
  tokens: Uint32Array.of(1),
  position: 0,
  blockTable: [0, 3],
  attention: DENSE,
  output: "last",
} as const;

Deno.test("divide keeps the parts' blocks apart", async () => {
  const { backend, blocks } = noting();
  const [first, second] = divide(backend, 2, 10) as [Backend, Backend];
  assertEquals(second.limits.kvBlocks, 10);
  await first.forward([INPUT]);
  await second.forward([INPUT]);
  await second.copyBlocks([[1, 2]]);
  assertEquals(blocks, [0, 3, 10, 13, 11, 12]);
});
