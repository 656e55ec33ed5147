/**
 * Plots of the ablation's JSON, as SVG:
 * `deno run -A --no-lock tests/eval/ablation/plots.ts` reads docs/data and writes docs/plots.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { POLICIES } from "./policies.ts";
import { renderSvg, type Spec } from "./render_svg.ts";
import type { SweepRow } from "./sweep.ts";
import type { Column, Report, Row } from "./table.ts";
import { WORKLOADS } from "./workloads.ts";

const COLUMNS: Readonly<Record<Column, string>> = {
  latency: "latency",
  throughput: "throughput",
  dtau_dc: "dτ/dC (nats a second)",
};

/** Readable for most kinds of colour vision (Okabe and Ito). */
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00"];

const LOOK = {
  config: {
    view: { stroke: null },
    font: "sans-serif",
    axis: { grid: true, gridColor: "#e6e6e6", domainColor: "#888", tickColor: "#888" },
    range: { category: COLOURS },
  },
};

/** The table: bars of the ratios to the baseline with their intervals, workloads side by side. */
export function tablePlot(rows: readonly Row[]): Spec {
  const values = rows.filter(({ policy }) => policy !== "baseline").flatMap((row) =>
    (Object.keys(COLUMNS) as Column[]).map((column) => ({
      policy: row.policy,
      workload: row.workload,
      column: COLUMNS[column],
      ...row.ratios[column],
    }))
  );
  const y = { field: "policy", type: "nominal", sort: Object.keys(POLICIES), title: null };
  const x = { type: "quantitative", title: "over the baseline" };
  return {
    ...LOOK,
    data: { values },
    facet: {
      row: { field: "column", type: "nominal", sort: Object.values(COLUMNS), title: null },
      column: { field: "workload", type: "nominal", sort: [...WORKLOADS], title: null },
    },
    spec: {
      width: 190,
      height: 130,
      layer: [
        {
          // Bars from 1: what a policy changes is what shows.
          transform: [{ calculate: "1", as: "one" }],
          mark: { type: "bar", height: 10 },
          encoding: {
            y,
            x: { field: "one", ...x, scale: { zero: false } },
            x2: { field: "value" },
            color: { value: COLOURS[0] },
          },
        },
        {
          mark: { type: "rule", strokeWidth: 1.5 },
          encoding: { y, x: { field: "low", ...x }, x2: { field: "high" } },
        },
        { mark: { type: "rule", color: "#444" }, encoding: { x: { datum: 1 } } },
      ],
    },
  };
}

/** Time of a decoding step against divergence: a line for each context, a point for each mass. */
export function divergencePlot(rows: readonly SweepRow[]): Spec {
  const values = rows.map((row) => ({ ...row, ...row.time, batch: `batch ${row.batch}` }));
  const longest = Math.max(...rows.map(({ length }) => length));
  return {
    ...LOOK,
    data: { values },
    facet: { column: { field: "batch", type: "nominal", title: null } },
    spec: {
      width: 300,
      height: 220,
      layer: [
        {
          mark: { type: "line", point: true },
          encoding: {
            x: { field: "kl", type: "quantitative", title: "KL from dense attention, nats" },
            y: { field: "value", type: "quantitative", title: "step time over dense" },
            color: { field: "length", type: "nominal", title: "context" },
            order: { field: "mass" },
          },
        },
        {
          transform: [{ filter: `datum.mass < 1 && datum.length === ${longest}` }],
          mark: { type: "text", dx: 4, dy: -6, align: "left", fontSize: 9 },
          encoding: {
            x: { field: "kl", type: "quantitative" },
            y: { field: "value", type: "quantitative" },
            text: { field: "mass", format: ".2f" },
            color: { field: "length", type: "nominal" },
          },
        },
      ],
    },
  };
}

/** What attention reads and multiplies over what dense attention does, by context length. */
export function sharePlot(rows: readonly SweepRow[]): Spec {
  const pruned = rows.filter(({ batch, mass }) => batch === 1 && mass < 1);
  const values = pruned.flatMap(({ length, mass, bytes, macs }) => [
    { length, mass, share: bytes, of: "bytes" },
    { length, mass, share: macs, of: "multiply-adds" },
  ]);
  return {
    ...LOOK,
    data: { values },
    facet: { column: { field: "of", type: "nominal", title: null } },
    spec: {
      width: 300,
      height: 220,
      mark: { type: "line", point: true },
      encoding: {
        x: {
          field: "length",
          type: "quantitative",
          scale: { type: "log", base: 2 },
          axis: { values: [...new Set(pruned.map(({ length }) => length))] },
          title: "context, tokens",
        },
        y: {
          field: "share",
          type: "quantitative",
          scale: { domain: [0, 1] },
          title: "attention over dense",
        },
        color: { field: "mass", type: "nominal", title: "mass" },
      },
    },
  };
}

if (import.meta.main) {
  const docs = new URL("../../../docs/", import.meta.url);
  const read = <T>(name: string): T | undefined => {
    const path = new URL(`data/${name}`, docs);
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
  };
  const table = read<Report>("ablation.json"),
    sweep = read<{ results: SweepRow[] }>("pruning.json");
  const plots: Readonly<Record<string, Spec | undefined>> = {
    "ablation.svg": table && tablePlot(table.results),
    "time_and_divergence.svg": sweep && divergencePlot(sweep.results),
    "attention_share.svg": sweep && sharePlot(sweep.results),
  };
  mkdirSync(new URL("plots/", docs), { recursive: true });
  for (const [name, spec] of Object.entries(plots)) {
    if (spec === undefined) continue;
    writeFileSync(new URL(`plots/${name}`, docs), await renderSvg(spec));
    console.error(`docs/plots/${name}`);
  }
}
