import { assertEquals, assertRejects } from "@std/assert";
import { describeResult, RowMeasurement } from "./measure_row.ts";
import type { Side, Sides } from "./row.ts";

/** A side that gives these values in turn and writes its name into `calls`. */
function scripted(name: string, values: readonly number[], calls: string[] = []): Side {
  let next = 0;
  const measure = () => {
    calls.push(name);
    return Promise.resolve(values[next++] ?? NaN);
  };
  return { name, measure };
}

const ROW = { name: "row", unit: "tokens/s", better: "more" } as const;

const measureRow = (
  row: ConstructorParameters<typeof RowMeasurement>[0],
  sides: Sides,
  runs?: number,
) => new RowMeasurement(row, sides).run(runs);

Deno.test("RowMeasurement alternates the sides and leaves out the first run", async () => {
  const calls: string[] = [];
  const own = scripted("own", [1, 20, 22, 24], calls);
  const peer = scripted("peer", [2, 10, 11, 12], calls);
  const result = await measureRow(ROW, { own, peers: [peer] }, 3);
  assertEquals(calls, ["own", "peer", "own", "peer", "own", "peer", "own", "peer"]);
  assertEquals(result, {
    name: "row",
    value: 22,
    unit: "tokens/s",
    peer: "peer",
    peer_value: 11,
    ratio: 2,
    spread: 4 / 22,
    peer_spread: 2 / 11,
    runs: 3,
  });
});

Deno.test("RowMeasurement counts the first run of a side that warms up by itself", async () => {
  const calls: string[] = [];
  const peer = { ...scripted("peer", [10], calls), warmsUp: true };
  const result = await measureRow(ROW, { own: scripted("own", [1, 2], calls), peers: [peer] }, 1);
  assertEquals(calls, ["own", "own", "peer"]);
  assertEquals([result.value, result.peer_value], [2, 10]);
});

Deno.test("RowMeasurement compares with the best of the peers", async () => {
  const sides = () => ({
    own: scripted("own", [6, 6]),
    peers: [scripted("high", [9, 9]), scripted("low", [3, 3])],
  });
  assertEquals((await measureRow(ROW, sides(), 1)).peer, "high");
  assertEquals((await measureRow({ ...ROW, better: "less" }, sides(), 1)).peer, "low");
});

Deno.test("RowMeasurement leaves nulls where no peer is there, and says how to get it", async () => {
  const missing = ["Cannot find x: install it"];
  const result = await measureRow(ROW, { own: scripted("own", [6, 6]), missing }, 1);
  assertEquals([result.peer, result.peer_value, result.ratio], [null, null, null]);
  assertEquals(result.missing, missing);
});

Deno.test("RowMeasurement holds its value against other settings", async () => {
  const sides = { own: scripted("own", [0, 9]), others: [scripted("half", [0, 4.5])] };
  const { others } = await measureRow(ROW, sides, 1);
  assertEquals(others, [{ name: "half", value: 4.5, ratio: 2, spread: 0 }]);
});

Deno.test("RowMeasurement takes the row's own number of runs", async () => {
  const own = scripted("own", [1, 2, 3]);
  assertEquals((await measureRow({ ...ROW, runs: 2 }, { own })).runs, 2);
});

Deno.test("RowMeasurement fails when a side does", async () => {
  const own = { name: "own", measure: () => Promise.reject(new Error("no")) };
  await assertRejects(() => measureRow(ROW, { own }, 1), Error, "no");
});

Deno.test("RowMeasurement tells what it has while a side is still at work", async () => {
  const calls: string[] = [];
  const atWork = Promise.withResolvers<void>();
  const endless = {
    name: "endless",
    measure: () => {
      // The third of its runs never ends.
      if (calls.push("endless") < 3) return Promise.resolve(4);
      atWork.resolve();
      return new Promise<never>(() => {});
    },
  };
  const sides = {
    own: scripted("own", [1, 20, 24]),
    peers: [endless],
    others: [{ ...scripted("late", [0, 5]) }],
  };
  const row = new RowMeasurement(ROW, sides);
  assertEquals(row.soFar(), undefined);
  void row.run(3);
  await atWork.promise;
  assertEquals(row.soFar(), {
    ...{ name: "row", value: 22, unit: "tokens/s", peer: "endless", peer_value: 4, ratio: 5.5 },
    ...{ spread: 4 / 22, peer_spread: 0, runs: 2, incomplete: true },
    others: [{ name: "late", value: 5, ratio: 4.4, spread: 0 }],
  });
});

Deno.test("describeResult writes a line for the row and one for each other setting", () => {
  const text = describeResult({
    name: "row",
    value: 1234.5,
    unit: "ms",
    peer: null,
    peer_value: null,
    ratio: null,
    spread: 0.5,
    peer_spread: null,
    runs: 1,
    others: [{ name: "half", value: 617.25, ratio: 2, spread: 0 }],
  });
  assertEquals(text.split("\n").map((line) => line.replace(/ +/g, " ").trim()), [
    "row 1230 ms (spread 50 %) no peer",
    "617 ms half 2.00",
  ]);
});
