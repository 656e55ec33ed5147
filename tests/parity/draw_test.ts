/** Drawing a token in the core, which sums in f32 vectors and sorts buckets, against its definition. */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { supports } from "../../wasm/loader.ts";
import { drawByDefinition } from "../support/draw_by_definition.ts";
import { normals, randomNumbers } from "../support/random.ts";
import { Probe } from "./probe.ts";

const VARIANTS = (["simd128", "relaxed"] as const).filter(supports);

/** Share of the mass by which sums in single precision may differ. */
const SLACK = 1e-5;

const stages = fc.record({
  temperature: fc.constantFrom(0, 1e-40, 0.01, 0.3, 0.7, 1, 1.5, 3, 1e30),
  topK: fc.constantFrom(0, 0, 1, 7, 300, 10_000),
  topP: fc.constantFrom(1, 1, 0.99, 0.9, 0.5, 1e-9),
  minP: fc.constantFrom(0, 0, 1e-4, 0.01, 0.3, 1),
  u: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
});
type Stages = typeof stages extends fc.Arbitrary<infer T> ? T : never;

const row = fc.record({
  size: fc.constantFrom(1, 3, 4, 50, 1003, 5000),
  spread: fc.constantFrom(0.01, 1, 3, 30),
  seed: fc.nat(1e6),
  step: fc.constantFrom(0, 0, 0.5),
  masked: fc.constantFrom(0, 0, 0.3),
}).map(({ size, spread, seed, step, masked }) => {
  const random = randomNumbers(seed);
  return normals(size, spread, random).map((z, id) => {
    if (id > 0 && random() < masked) return -Infinity;
    return step === 0 ? z : Math.round(z / step) * step;
  });
});

/**
 * Whether a token ranks among those that the definition gives where the shares are a little more or
 * less: between these lie all that may come out, for a tail has many within so little mass.
 */
function allows(logits: Float32Array, given: Stages, token: number): boolean {
  const around = (x: number) => [x, x - SLACK, x + SLACK];
  const found: number[] = [];
  for (const topP of given.topP < 1 ? around(given.topP) : [1]) {
    for (const u of around(given.u)) {
      const share = Math.min(Math.max(u, 0), 1);
      found.push(logits[drawByDefinition(logits, { ...given, topP }, share)]!);
    }
  }
  const logit = logits[token]!;
  return logit <= Math.max(...found) && logit >= Math.min(...found);
}

for (const variant of VARIANTS) {
  Deno.test(`${variant} draw follows its definition`, async () => {
    const probe = await Probe.open(variant);
    let exact = 0, runs = 0;
    fc.assert(
      fc.property(row, stages, (logits, given) => {
        const token = probe.draw(logits, given);
        runs++;
        if (token === drawByDefinition(logits, given, given.u)) exact++;
        else {assert(
            allows(logits, given, token!),
            `drew ${token}, logit ${logits[token!]}, ${JSON.stringify(given)} of ${logits.length}`,
          );}
      }),
      { numRuns: 1000 },
    );
    assert(exact > 0.98 * runs, `${exact} of ${runs} are the same to the last digit`);
  });

  Deno.test(`${variant} draw visits each token as often as its probability`, async () => {
    const probe = await Probe.open(variant);
    const logits = Float32Array.of(2, 1, -Infinity, 1, -40, 0), draws = 10_000;
    const counts = new Map<number, number>();
    const plain = { temperature: 1.7, topK: 0, topP: 1, minP: 0 };
    for (let i = 0; i < draws; i++) {
      const token = probe.draw(logits, { ...plain, u: (i + 0.5) / draws })!;
      counts.set(token, (counts.get(token) ?? 0) + 1);
    }
    const weights = [...logits].map((z) => Math.exp(z / 1.7));
    const total = weights.reduce((x, y) => x + y);
    for (const [id, weight] of weights.entries()) {
      assert(Math.abs((counts.get(id) ?? 0) - draws * weight / total) < 2, `token ${id}`);
    }
  });

  Deno.test(`${variant} draw finds nothing where all are masked`, async () => {
    const probe = await Probe.open(variant);
    const masked = new Float32Array(9).fill(-Infinity);
    for (const temperature of [0, 1]) {
      const given = { temperature, topK: 0, topP: 1, minP: 0, u: 0.5 };
      assertEquals(probe.draw(masked, given), undefined);
    }
  });
}
