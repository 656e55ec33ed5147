import { assert, assertEquals, assertLess } from "@std/assert";
import type { Draw } from "../../core/engine/backend.ts";
import { drawFromRow } from "../../tests/support/draw_by_definition.ts";
import { ADAPTER, GpuProbe } from "../../tests/support/gpu.ts";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { drawKernel, drawWords, NO_TOKEN } from "./draw.ts";
import { idGroups, overrideKernel } from "./row_ids.ts";

const PLAIN: Draw = {
  overrides: { ids: new Uint32Array(), logits: new Float32Array() },
  topK: 0,
  topP: 1,
  minP: 0,
  temperature: 1,
  u: 0.5,
};

async function drawn(probe: GpuProbe, logits: Float32Array, draw: Draw) {
  const row = logits.slice();
  const { ids, logits: given } = draw.overrides;
  if (ids.length > 0) {
    const count = Uint32Array.of(ids.length);
    await probe.run(overrideKernel(), { ids, given, count, row }, [idGroups(ids.length)]);
  }
  const result = new Uint32Array(1);
  const words = new Uint32Array(drawWords(draw));
  const kernel = drawKernel({ vocabulary: row.length });
  await probe.run(kernel, { draw: words, row, drawn: result }, [1]);
  return result[0] === NO_TOKEN ? undefined : result[0];
}

Deno.test({
  name: "draw takes the token that sorting the row would",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const random = randomNumbers(8);
  const rows: Record<string, Float32Array> = {
    "normal": normals(1003, 2, random),
    "ties": Float32Array.from({ length: 1003 }, (_, id) => id % 7 / 2),
    "masked": normals(1003, 2, random).map((z, id) => id % 3 ? -Infinity : z),
    "one possible": new Float32Array(1003).fill(-Infinity).with(17, -3),
  };
  const filters: Partial<Draw>[] = [
    {},
    { topK: 40 },
    { topK: 5000 },
    { topP: 0.9 },
    { topP: 0 },
    { minP: 0.05 },
    { minP: 1 },
    { topK: 100, topP: 0.8, minP: 0.01 },
    { temperature: 0 },
    { topP: 0.95, temperature: 0.3 },
    { temperature: 4 },
    { temperature: 1e-9 },
  ];
  let [count, others] = [0, 0];
  for (const [name, logits] of Object.entries(rows)) {
    for (const filter of filters) {
      for (const u of [0, 0.3, random(), 1 - 2 ** -40]) {
        const draw = { ...PLAIN, ...filter, u };
        const found = await drawn(probe, logits, draw);
        const expected = drawFromRow(logits.slice(), draw);
        count++;
        if (found === expected) continue;
        // Where the running mass all but meets the share, rounding decides between ranks next to it.
        others++;
        const at = (u: number) => logits[drawFromRow(logits.slice(), { ...draw, u })!]!;
        const [above, below] = [at(Math.max(0, u - 3e-6)), at(Math.min(u + 3e-6, 1 - 2 ** -53))];
        const message = `${name} ${JSON.stringify(filter)} at ${u}: ${found}, not ${expected}`;
        assert(logits[found!]! <= above && logits[found!]! >= below, message);
      }
    }
  }
  assertLess(others, count / 20);
  probe.close();
});

Deno.test({
  name: "draw looks at logits that stand in for the row's, and finds none where none is possible",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const logits = normals(200, 1, randomNumbers(2));
  const best = Uint32Array.of(150);
  const overrides = { ids: best, logits: Float32Array.of(40) };
  assertEquals(await drawn(probe, logits, { ...PLAIN, overrides, u: 0.9 }), 150);
  const all = {
    ids: Uint32Array.from(logits.keys()),
    logits: new Float32Array(200).fill(-Infinity),
  };
  for (const temperature of [0, 1]) {
    const draw = { ...PLAIN, overrides: all, temperature };
    assertEquals(await drawn(probe, logits, draw), undefined);
  }
  probe.close();
});
