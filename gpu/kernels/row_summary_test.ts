import { assert, assertAlmostEquals, assertEquals, assertFalse } from "@std/assert";
import { exactStatistics } from "../../tests/support/exact_statistics.ts";
import { ADAPTER, GpuProbe } from "../../tests/support/gpu.ts";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { statisticsOf, uncertaintyOf } from "../row_statistics.ts";
import { CHUNKS_AT_ONCE, chunksOf, rowChunksKernel } from "./row_chunks.ts";
import { rowSummaryKernel, summaryWords } from "./row_summary.ts";
import { rowUncertaintyKernel } from "./row_uncertainty.ts";

const END = 2;

/** Statistics of rows of one length, as the GPU finds them. */
async function statistics(probe: GpuProbe, rows: readonly Float32Array[], topK: number) {
  const vocabulary = rows[0]!.length, chunkCount = chunksOf({ vocabulary });
  const logits = new Float32Array(rows.length * vocabulary);
  rows.forEach((row, i) => logits.set(row, i * vocabulary));
  const chunks = new Float32Array(4 * chunkCount * rows.length);
  const view = Uint32Array.of(0, 0x3f800000);
  const dispatch = [Math.ceil(chunkCount / CHUNKS_AT_ONCE), rows.length] as const;
  await probe.run(rowChunksKernel({ vocabulary }), { view, logits, chunks }, dispatch);
  const summary = new Uint32Array(rows.length * summaryWords(topK));
  const kernel = rowSummaryKernel({ vocabulary, topK, endTokens: [END] });
  await probe.run(kernel, { view, logits, chunks, summary }, [rows.length]);
  return rows.map((_, row) => statisticsOf(summary, row, topK));
}

/** Rows of logits by name. */
function rows(): Record<string, Float32Array> {
  const random = randomNumbers(11);
  return {
    "normal": normals(1003, 2, random),
    "uniform": new Float32Array(1003).fill(-7),
    "one certain": normals(1003, 1, random).map((z, id) => id === 321 ? 200 : z),
    "masked": normals(1003, 2, random).map((z, id) => id % 3 ? -Infinity : z),
    "a chunk masked": normals(1003, 2, random).map((z, id) => id > 130 && id < 900 ? -Infinity : z),
    "ties": Float32Array.from({ length: 1003 }, (_, id) => id % 5),
    "ascending": Float32Array.from({ length: 1003 }, (_, id) => id / 100),
    "descending": Float32Array.from({ length: 1003 }, (_, id) => -id / 100),
    "large": normals(1003, 1e4, random),
  };
}

Deno.test({
  name: "row statistics equal those in double precision",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const whole = { "a whole vocabulary": normals(49152, 3, randomNumbers(2)) };
  let [entropy, varentropy] = [0, 0];
  for (const set of [rows(), whole]) {
    const found = await statistics(probe, Object.values(set), 64);
    for (const [i, [name, logits]] of Object.entries(set).entries()) {
      const [actual, expected] = [found[i]!, exactStatistics(logits, END, 64)];
      assertEquals(actual.max, expected.max, name);
      assertEquals([...actual.topIds], expected.topIds, name);
      assertEquals([...actual.topLogits], expected.topLogits, name);
      assertAlmostEquals(actual.logZ, expected.logZ, 2e-6 * Math.max(1, Math.abs(expected.logZ)));
      assertAlmostEquals(actual.entropy, expected.entropy, 2e-5, name);
      assertAlmostEquals(actual.varentropy, expected.varentropy, 2e-4, name);
      assertAlmostEquals(actual.endProbability, expected.endProbability, 1e-6, name);
      entropy = Math.max(entropy, Math.abs(actual.entropy - expected.entropy));
      varentropy = Math.max(varentropy, Math.abs(actual.varentropy - expected.varentropy));
    }
  }
  console.log(`row statistics, largest difference: H ${entropy}, V ${varentropy}`);
  probe.close();
});

Deno.test({
  name: "row statistics list all tokens of a small vocabulary",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const row = normals(70, 2, randomNumbers(9));
  const [found] = await statistics(probe, [row], 70);
  assertEquals([...found!.topIds], exactStatistics(row, END, 70).topIds);
  probe.close();
});

Deno.test({
  name: "row statistics of an unusable row are not finite",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const spoilt = (...values: number[]) => {
    const logits = normals(500, 1, randomNumbers(5));
    logits.set(values, 250);
    return logits;
  };
  const rows = [spoilt(1), spoilt(NaN), spoilt(Infinity), new Float32Array(500).fill(-Infinity)];
  const [good, ...bad] = await statistics(probe, rows, 8);
  assert(Number.isFinite(good!.logZ));
  for (const { logZ } of bad) assertFalse(Number.isFinite(logZ));
  probe.close();
});

Deno.test({
  name: "row uncertainty follows the temperature",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const logits = normals(1003, 2, randomNumbers(5)), vocabulary = logits.length;
  for (const temperature of [0.1, 0.7, 5]) {
    const view = new Uint32Array(2);
    new Float32Array(view.buffer)[1] = 1 / temperature;
    const chunks = new Float32Array(4 * chunksOf({ vocabulary }));
    await probe.run(rowChunksKernel({ vocabulary }), { view, logits, chunks }, [1]);
    const uncertainty = new Float32Array(4);
    await probe.run(rowUncertaintyKernel({ vocabulary }), { view, chunks, uncertainty }, [1]);
    const [, z, a, b] = uncertainty;
    const [found, expected] = [
      uncertaintyOf(z!, a!, b!),
      exactStatistics(logits, END, 1, temperature),
    ];
    assertAlmostEquals(found.entropy, expected.entropy, 1e-5, `H at ${temperature}`);
    assertAlmostEquals(found.varentropy, expected.varentropy, 1e-4, `V at ${temperature}`);
  }
  probe.close();
});
