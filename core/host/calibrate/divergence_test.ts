import { assertAlmostEquals, assertEquals } from "@std/assert";
import { NO_ATTENTION } from "../../engine/backend.ts";
import { divergenceOf, logProbabilities, Tally } from "./divergence.ts";

const row = (...weights: number[]) => {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return logProbabilities(Float32Array.from(weights, Math.log), Math.log(total));
};

/** Reads `read` of 100 bytes and half as many of 100 multiply-adds. */
const reads = (read: number, massDropped: number) => ({
  ...NO_ATTENTION,
  bytesRead: read,
  bytesTotal: 100,
  macs: read / 2,
  macsTotal: 100,
  massDropped,
});

Deno.test("Tally takes divergence and losses in nats", () => {
  const tally = new Tally();
  tally.add(row(1, 1, 2), row(2, 1, 1), 2, reads(40, 0.1));
  assertAlmostEquals(tally.kl[0]!, 0.25 * Math.log(0.5) + 0.5 * Math.log(2), 1e-6);
  assertAlmostEquals(tally.loss[0]!, Math.log(4), 1e-6);
  assertAlmostEquals(tally.denseLoss[0]!, Math.log(2), 1e-6);
  assertEquals(tally.agrees, [false]);
});

Deno.test("Tally finds equal rows at no distance, and masked tokens no trouble", () => {
  const tally = new Tally();
  tally.add(row(0, 3, 1), row(0, 3, 1), 1, NO_ATTENTION);
  assertEquals([tally.kl, tally.agrees], [[0], [true]]);
});

Deno.test("divergenceOf weighs all positions alike and adds up what was read", () => {
  const [one, other] = [new Tally(), new Tally()];
  one.add(row(1, 1), row(1, 1), 0, reads(40, 0.1));
  other.add(row(1, 1), row(3, 1), 0, reads(20, 0.2));
  other.add(row(1, 1), row(1, 1), 0, reads(30, 0.4));
  const { kl, pplRatio, top1, bytesShare, macsShare, massDropped } = divergenceOf([one, other]);
  assertAlmostEquals(kl, 0.5 * Math.log(4 / 3) / 3, 1e-6);
  assertAlmostEquals(pplRatio, (2 / 3) ** (1 / 3), 1e-6);
  assertEquals(top1, 1);
  assertAlmostEquals(bytesShare, 0.3);
  assertAlmostEquals(macsShare, 0.15);
  assertAlmostEquals(massDropped, (0.1 + 0.3) / 2);
});
