import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import type { Draw } from "../../core/engine/backend.ts";
import { LogitAdjuster } from "../../core/engine/sampling/logit_adjuster.ts";
import { sampleFromStats } from "../../core/engine/sampling/sampler.ts";
import { drawByDefinition } from "../../tests/support/draw_by_definition.ts";
import { ADAPTER, GpuProbe } from "../../tests/support/gpu.ts";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { drawnOf, statisticsOf } from "../row_statistics.ts";
import { drawKernel, drawWords } from "./draw.ts";
import { CHUNKS_AT_ONCE, chunksOf, rowChunksKernel } from "./row_chunks.ts";
import { idGroups, overrideKernel } from "./row_ids.ts";
import { rowSummaryKernel, summaryWords } from "./row_summary.ts";

const ignore = ADAPTER === undefined;
const VOCABULARY = 1003;
const PLAIN: Draw = { topK: 0, topP: 1, minP: 0, temperature: 1, u: 0.5 };

interface Drawing {
  readonly logits: Float32Array;
  readonly draw: Draw | undefined;
}

/** Summaries of rows, drawn from. */
async function drawFrom(probe: GpuProbe, rows: readonly Drawing[], topK: number) {
  const size = { vocabulary: VOCABULARY };
  const logits = new Float32Array(rows.length * VOCABULARY);
  rows.forEach((row, i) => logits.set(row.logits, i * VOCABULARY));
  const view = new Uint32Array(Float32Array.of(0, 1).buffer);
  const chunks = new Float32Array(rows.length * 4 * chunksOf(size));
  const summary = new Uint32Array(rows.length * summaryWords(topK));
  const groups = Math.ceil(chunksOf(size) / CHUNKS_AT_ONCE);
  await probe.run(rowChunksKernel(size), { view, logits, chunks }, [groups, rows.length]);
  const summarise = rowSummaryKernel({ ...size, topK, endTokens: [] });
  await probe.run(summarise, { view, logits, chunks, summary }, [rows.length]);
  const draws = drawWords(rows.map(({ draw }) => draw));
  await probe.run(drawKernel({ ...size, topK }), { draws, logits, summary }, [rows.length]);
  return summary;
}

const random = randomNumbers(8);
const LOGITS: Record<string, Float32Array> = {
  "normal": normals(VOCABULARY, 2, random),
  "sharp": normals(VOCABULARY, 6, random),
  "ties": Float32Array.from({ length: VOCABULARY }, (_, id) => id % 7 / 2),
  "masked": normals(VOCABULARY, 2, random).map((z, id) => id % 3 ? -Infinity : z),
  "few possible": normals(VOCABULARY, 2, random).map((z, id) => id % 99 ? -Infinity : z),
  "one possible": new Float32Array(VOCABULARY).fill(-Infinity).with(17, -3),
};
const FILTERS: readonly Partial<Draw>[] = [
  {},
  { topK: 5 },
  { topK: 40 },
  { topK: 5000 },
  { topP: 0.9 },
  { topP: 0.4 },
  { topP: 0 },
  { minP: 0.05 },
  { minP: 1e-4 },
  { minP: 1 },
  { topK: 100, topP: 0.8, minP: 0.01 },
  { topK: 6, topP: 0.8, minP: 0.1, temperature: 2 },
  { temperature: 0 },
  { topP: 0.95, temperature: 0.3 },
  { temperature: 0.7 },
  { temperature: 4 },
  { temperature: 1e-9 },
];

/** Each row with each filter, at numbers from one end to the other. */
const DRAWINGS = Object.values(LOGITS).flatMap((logits) =>
  FILTERS.flatMap((filter) =>
    [0, 0.3, random(), random(), 1 - 2 ** -40].map((u) => ({
      logits,
      draw: { ...PLAIN, ...filter, u },
    }))
  )
);

/**
 * Whether a token is one that comes out where the running mass, or that of top_p, is a little more or
 * less: where it all but meets the share, rounding decides between neighbours in rank.
 */
function isNextTo(logits: Float32Array, draw: Draw, token: number): boolean {
  const found: number[] = [];
  for (const topP of draw.topP < 1 ? [-3e-6, 0, 3e-6].map((x) => draw.topP + x) : [1]) {
    for (const x of [-3e-6, 0, 3e-6]) {
      const u = Math.min(Math.max(0, draw.u + x), 1 - 2 ** -53);
      found.push(logits[drawByDefinition(logits, { ...draw, topP }, u)]!);
    }
  }
  return logits[token]! <= Math.max(...found) && logits[token]! >= Math.min(...found);
}

for (const topK of [8, 64]) {
  Deno.test({
    name: `draw takes the token that sorting the row would, with ${topK} of it listed`,
    ignore,
  }, async () => {
    const probe = await GpuProbe.open();
    const summary = await drawFrom(probe, DRAWINGS, topK);
    let others = 0;
    for (const [row, { logits, draw }] of DRAWINGS.entries()) {
      const { token, logit } = drawnOf(summary, row, topK)!;
      assertEquals(logit, logits[token]);
      const expected = drawByDefinition(logits, draw, draw.u);
      if (token === expected) continue;
      others++;
      const message = `${JSON.stringify(draw)} in row ${row}: ${token}, not ${expected}`;
      assert(isNextTo(logits, draw, token), message);
    }
    assertLess(others, DRAWINGS.length / 20);
    probe.close();
  });
}

Deno.test(
  { name: "draw takes what the engine's sampler would, where that can tell", ignore },
  async () => {
    const probe = await GpuProbe.open();
    const topK = 64;
    const rows = Array.from({ length: 400 }, (_, i) => ({
      logits: normals(VOCABULARY, 1 + i % 7, random),
      draw: { ...PLAIN, ...FILTERS[i % FILTERS.length], u: random() },
    }));
    const summary = await drawFrom(probe, rows, topK);
    let told = 0, same = 0;
    for (const [row, { draw: { u, ...rest } }] of rows.entries()) {
      const sampling = { ...rest, seed: 0n };
      const adjuster = new LogitAdjuster({ prompt: [], sampling, maxTokens: 1 }, new Set());
      const stats = statisticsOf(summary, row, topK);
      const token = sampleFromStats(sampling, stats, adjuster, VOCABULARY, u);
      if (token === undefined) continue;
      told++;
      if (token === drawnOf(summary, row, topK)?.token) same++;
    }
    assertGreater(told, 200);
    assertGreater(same, told - 3);
    probe.close();
  },
);

Deno.test(
  { name: "draw leaves rows with the best token that nothing is asked of", ignore },
  async () => {
    const probe = await GpuProbe.open();
    const logits = LOGITS["normal"]!;
    const rows = [undefined, { ...PLAIN, u: 0.999 }, { ...PLAIN, temperature: 0, u: 0.999 }];
    const summary = await drawFrom(probe, rows.map((draw) => ({ logits, draw })), 64);
    const [none, drawn, greedy] = rows.map((_, row) => drawnOf(summary, row, 64)!.token);
    const best = logits.indexOf(Math.max(...logits));
    assertEquals([none, greedy], [best, best]);
    assertLess(logits[drawn!]!, logits[best]!);
    probe.close();
  },
);

Deno.test({
  name: "override writes logits in place of the row's, and draw finds none where none is possible",
  ignore,
}, async () => {
  const probe = await GpuProbe.open();
  const row = LOGITS["normal"]!.slice();
  const override = async (ids: Uint32Array, given: Float32Array) => {
    const count = Uint32Array.of(ids.length);
    await probe.run(overrideKernel(), { ids, given, count, row }, [idGroups(ids.length)]);
  };
  const drawn = async (temperature: number) => {
    const drawing = { logits: row, draw: { ...PLAIN, temperature, u: 0.9 } };
    return drawnOf(await drawFrom(probe, [drawing], 8), 0, 8)?.token;
  };
  await override(Uint32Array.of(150), Float32Array.of(40));
  assertEquals(await drawn(1), 150);
  await override(Uint32Array.from(row.keys()), new Float32Array(VOCABULARY).fill(-Infinity));
  for (const temperature of [0, 1, 2]) assertEquals(await drawn(temperature), undefined);
  probe.close();
});
