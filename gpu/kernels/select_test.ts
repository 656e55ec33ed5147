import { assertAlmostEquals, assertEquals } from "@std/assert";
import { ADAPTER, GpuProbe } from "../../tests/support/gpu.ts";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { chosenWords } from "./attend.ts";
import { selectKernel } from "./select.ts";

const [HEADS, KV_HEADS, HEAD_SIZE, DIMENSIONS, BLOCKS] = [6, 2, 16, 8, 300];
const GROUP = HEADS / KV_HEADS;
const WIDTH = (HEADS + 2 * KV_HEADS) * HEAD_SIZE;
const WHOLE = 2 ** 28;

interface Plan {
  readonly kind: "mass" | "threshold";
  readonly share: number;
  readonly least: number;
}

/** A context of `tokens` tokens whose blocks lie in reverse, its codes, and one query. */
function context(tokens: number) {
  const random = randomNumbers(tokens);
  const codes = Uint32Array.from(
    { length: BLOCKS * KV_HEADS * 16 },
    () => Math.floor(random() * 2 ** 32),
  );
  // Some blocks alike, so that there are ties.
  codes.copyWithin(0, 20 * KV_HEADS * 16, 60 * KV_HEADS * 16);
  const sketch = new Float32Array(KV_HEADS * DIMENSIONS * (2 * HEAD_SIZE + 1));
  sketch.set(
    normals(KV_HEADS * DIMENSIONS * HEAD_SIZE, 0.04, random),
    KV_HEADS * DIMENSIONS * (HEAD_SIZE + 1),
  );
  const blocks = Math.ceil(tokens / 16);
  const tables = Uint32Array.from({ length: blocks }, (_, i) => blocks - 1 - i);
  return { tokens, blocks, codes, sketch, tables, qkv: normals(WIDTH, 1, random) };
}

type Context = ReturnType<typeof context>;

/** Each block's level in double precision, in the order of the context. */
function levels({ tokens, blocks, codes, sketch, tables, qkv }: Context, kvHead: number): number[] {
  const shares = new Array<number>(blocks).fill(0);
  for (let h = kvHead * GROUP; h < (kvHead + 1) * GROUP; h++) {
    const mapped = Array.from({ length: DIMENSIONS }, (_, d) => {
      const row = KV_HEADS * DIMENSIONS * (HEAD_SIZE + 1) + (kvHead * DIMENSIONS + d) * HEAD_SIZE;
      let sum = 0;
      for (let i = 0; i < HEAD_SIZE; i++) sum += sketch[row + i]! * qkv[h * HEAD_SIZE + i]!;
      return sum;
    });
    const weights = Array.from({ length: tokens }, (_, p) => {
      const word = codes[(tables[p >> 4]! * KV_HEADS + kvHead) * 16 + p % 16]!;
      return Math.exp(mapped.reduce((sum, q, d) => sum + q * (((word >>> (4 * d)) & 15) - 8), 0));
    });
    const total = weights.reduce((sum, x) => sum + x, 0);
    weights.forEach((weight, p) => shares[p >> 4]! += weight / total / GROUP);
  }
  return shares.map((share) => Math.round(share * WHOLE));
}

/** The definition: by rank, ties to the earlier, after the first and the last two. */
function chooseByRank(found: readonly number[], { kind, share, least }: Plan): number[] {
  const last = found.length - 1, chosen = [0, last - 1, last];
  if (found.length <= Math.max(3, least)) return [...found.keys()];
  const others = [...found.keys()].filter((i) => !chosen.includes(i))
    .sort((a, b) => found[b]! - found[a]! || a - b);
  let sum = chosen.reduce((sum, i) => sum + found[i]!, 0);
  const asked = Math.round(Math.fround(share) * WHOLE);
  for (const i of others) {
    const wanted = kind === "mass" ? sum < asked : found[i]! >= asked;
    if (!wanted && chosen.length >= least) break;
    chosen.push(i);
    sum += found[i]!;
  }
  return chosen.sort((a, b) => a - b);
}

async function select(probe: GpuProbe, given: Context, { kind, share, least }: Plan) {
  const tokens = Uint32Array.of(0, given.tokens - 1, 0, kind === "mass" ? 1 : 2, 0, least);
  new Float32Array(tokens.buffer)[4] = share;
  const chosen = new Uint32Array(KV_HEADS * chosenWords(BLOCKS));
  const counters = new Float32Array(2 * KV_HEADS);
  const kv = { type: "f16", kvHeads: KV_HEADS, headSize: HEAD_SIZE } as const;
  const kernel = selectKernel({ heads: HEADS, kv, blocks: BLOCKS, dimensions: DIMENSIONS });
  await probe.run(kernel, {
    step: Uint32Array.of(1),
    slab: Uint32Array.of(0),
    queries: Uint32Array.of(0),
    tokens,
    ...{ tables: given.tables, qkv: given.qkv, sketch: given.sketch, codes: given.codes },
    chosen_blocks: chosen,
    counters,
  }, [KV_HEADS, 1]);
  return Array.from({ length: KV_HEADS }, (_, kvHead) => {
    const at = kvHead * chosenWords(BLOCKS);
    return {
      blocks: [...chosen.slice(at + 1, at + 1 + chosen[at]!)],
      count: counters[2 * kvHead]!,
      dropped: counters[2 * kvHead + 1]!,
    };
  });
}

const PLANS: readonly Plan[] = [
  { kind: "mass", share: 0.3, least: 0 },
  { kind: "mass", share: 0.9, least: 4 },
  { kind: "mass", share: 1, least: 0 },
  { kind: "mass", share: 0.01, least: 37 },
  { kind: "threshold", share: 0.004, least: 0 },
  { kind: "threshold", share: 0.9, least: 12 },
  { kind: "threshold", share: 0, least: 0 },
];

Deno.test({
  name: "select chooses blocks by rank of their share, the first and the last two always",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  // Up to more blocks than a workgroup has threads.
  for (const tokens of [50, 160, 2003, 4800]) {
    const given = context(tokens);
    for (const plan of PLANS) {
      const found = await select(probe, given, plan);
      for (const [kvHead, { blocks, count, dropped }] of found.entries()) {
        const exact = levels(given, kvHead);
        const expected = chooseByRank(exact, plan);
        const message = `${tokens} tokens, ${JSON.stringify(plan)}`;
        // A sum that only just reaches the mass may do so a block earlier or later.
        const spare = Math.abs(blocks.length - expected.length);
        if (spare > 1) assertEquals(blocks, expected.map((i) => given.tables[i]), message);
        const logical = blocks.map((block) => given.blocks - 1 - block);
        assertEquals(logical, [...logical].sort((a, b) => a - b), message);
        assertEquals(logical.slice(0, 1), [0], message);
        assertEquals(logical.slice(-2), [given.blocks - 2, given.blocks - 1], message);
        const held = logical.reduce((sum, i) => sum + exact[i]!, 0) / WHOLE;
        const best = expected.reduce((sum, i) => sum + exact[i]!, 0) / WHOLE;
        assertAlmostEquals(held, best, 1 / given.blocks, message);
        assertAlmostEquals(dropped, Math.max(0, 1 - held), 1e-4, message);
        assertEquals(count, blocks.length);
      }
    }
  }
  probe.close();
});
