import { assertEquals, assertRejects } from "@std/assert";
import { MissingPeerError } from "./contender.ts";
import { Report } from "./report.ts";
import type { Row, Side } from "./row.ts";

const BENCH = { model: "", converted: () => Promise.resolve("") };

/** A row whose own side is measured by `measure`. */
function rowOf(name: string, measure: Side["measure"], disposed: string[] = []): Row {
  return {
    ...{ name, about: "", unit: "s", better: "less" },
    open: ({ defer }) => {
      defer(() => Promise.resolve(void disposed.push(name)));
      return Promise.resolve({ own: { name: "own", measure } });
    },
  };
}

Deno.test("Report keeps the rows that are through and the values of one that fails", async () => {
  const report = new Report();
  const disposed: string[] = [];
  await report.measure(rowOf("whole", () => Promise.resolve(2), disposed), BENCH, 2);
  const missing = () => Promise.reject(new MissingPeerError("Cannot find x: install it"));
  await report.measure({ ...rowOf("missing", missing), open: missing }, BENCH, 2);
  let calls = 0;
  const failing = () => ++calls < 3 ? Promise.resolve(4) : Promise.reject(new Error("no"));
  await assertRejects(
    () => report.measure(rowOf("half", failing, disposed), BENCH, 2),
    Error,
    "no",
  );
  const { results, skipped } = report.toJSON();
  assertEquals(
    results.map(({ name, value, runs, incomplete }) => [name, value, runs, incomplete]),
    [["whole", 2, 2, undefined], ["half", 4, 1, true]],
  );
  assertEquals(skipped, [{ name: "missing", reason: "Cannot find x: install it" }]);
  assertEquals(disposed, ["whole", "half"]);
});
