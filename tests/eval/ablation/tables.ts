/**
 * Puts the tables of docs/data into docs/ablation.md, between `<!-- table NAME -->` and `<!-- end -->`:
 * `deno run -A tests/eval/ablation/tables.ts`
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { CLAIMS, verdictOf } from "./claims.ts";
import { interval } from "./show.ts";
import type { SweepRow } from "./sweep.ts";
import type { Column, Report, Row, Synergy } from "./table.ts";

type Cells = Readonly<Record<string, string>>;

/** A Markdown table, its columns those of all rows. */
export function markdown(rows: readonly Cells[]): string {
  const heads = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const width = (head: string) =>
    Math.max(head.length, ...rows.map((row) => row[head]?.length ?? 0));
  const line = (cell: (head: string) => string) =>
    `| ${heads.map((head) => cell(head).padEnd(width(head))).join(" | ")} |`;
  return [
    line((head) => head),
    line((head) => "-".repeat(width(head))),
    ...rows.map((row) => line((head) => row[head] ?? "")),
  ].join("\n");
}

/** Text with the tables put in; a table that is not given stays as it is. */
export function fillIn(text: string, tables: Readonly<Record<string, string>>): string {
  return text.replace(
    /(<!-- table (\S+) -->\n).*?(<!-- end -->)/gs,
    (whole: string, start: string, name: string, end: string) =>
      tables[name] === undefined ? whole : `${start}\n${tables[name]}\n\n${end}`,
  );
}

const fixed = (value: number | null, digits: number) => value?.toFixed(digits) ?? "not measured";
const percent = (share: number) => `${(100 * share).toFixed(0)} %`;

function ratios({ policy, ratios, quality }: Row): Cells {
  return {
    policy: `\`${policy}\``,
    latency: interval(ratios.latency),
    throughput: interval(ratios.throughput),
    "dτ/dC": interval(ratios.dtau_dc),
    perplexity: fixed(quality.ppl_ratio, 4),
    KL: fixed(quality.kl, 4),
    "top-1": fixed(quality.top1, 3),
  };
}

function absolutes({ policy, absolute: of }: Row): Cells {
  return {
    policy: `\`${policy}\``,
    "latency, s": of.latency.toFixed(2),
    "a token, ms": (1000 * of.latency_per_token).toFixed(0),
    "first token, s": of.ttft.toFixed(2),
    "gap p50 / p99, ms": `${(1000 * of.gap_p50).toFixed(0)} / ${(1000 * of.gap_p99).toFixed(0)}`,
    "tokens/s": of.throughput.toFixed(1),
    "nats/s": of.nats_per_second.toFixed(1),
    "nats/token": of.nats_per_token.toFixed(3),
    "nats/GB": of.nats_per_gigabyte.toFixed(2),
    "bytes": percent(of.attention_bytes),
    "MACs": percent(of.attention_macs),
    "dropped": percent(of.mass_dropped),
  };
}

function texts({ policy, absolute: of }: Row): Cells {
  return {
    policy: `\`${policy}\``,
    temperature: of.temperature.toFixed(2),
    "entropy, nats": of.entropy.toFixed(2),
    "perplexity of the text": of.text_perplexity.toFixed(2),
    "distinct-2": of.distinct_2.toFixed(3),
    "repeated-4": of.repeated_4.toFixed(3),
  };
}

function together({ workload, column, all, product, excess }: Synergy): Cells {
  return {
    workload,
    figure: column,
    all: all.toFixed(3),
    "product of parts": product.toFixed(3),
    "all / product": interval(excess, 3),
  };
}

/** Each claim of the paper beside what every workload says of it. */
function claimed(results: readonly Row[]): Cells[] {
  const layers = Object.entries(CLAIMS) as [keyof typeof CLAIMS, Record<Column, number>][];
  return layers.flatMap(([policy, claims]) =>
    (Object.entries(claims) as [Column, number][]).map(([column, claim]): Cells => ({
      layer: policy,
      figure: column,
      paper: claim.toFixed(2),
      ...Object.fromEntries(
        results.filter((row) => row.policy === policy).map(({ workload, ratios }) => {
          const measured = ratios[column];
          return [workload, `${interval(measured)} ${verdictOf(column, measured, claim)}`];
        }),
      ),
    }))
  );
}

function pruned(row: SweepRow): Cells {
  return {
    context: String(row.length),
    batch: String(row.batch),
    mass: row.mass.toFixed(2),
    "step, ms": row.milliseconds.toFixed(1),
    "over dense": interval(row.time),
    bytes: percent(row.bytes),
    MACs: percent(row.macs),
    KL: row.kl.toFixed(4),
    perplexity: row.ppl_ratio.toFixed(4),
    "top-1": row.top1.toFixed(3),
  };
}

/** The tables of a run, by name. */
export function tablesOf({ results, synergy }: Report): Record<string, string> {
  const tables: Record<string, string> = { claims: markdown(claimed(results)) };
  if (synergy.length > 0) tables.synergy = markdown(synergy.map(together));
  for (const workload of new Set(results.map((row) => row.workload))) {
    const rows = results.filter((row) => row.workload === workload);
    tables[workload] = markdown(rows.map(ratios));
    tables[`${workload}-absolute`] = markdown(rows.map(absolutes));
    tables[`${workload}-texts`] = markdown(rows.map(texts));
  }
  return tables;
}

if (import.meta.main) {
  const docs = new URL("../../../docs/", import.meta.url);
  const read = <T>(name: string): T | undefined => {
    const path = new URL(`data/${name}`, docs);
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
  };
  const report = read<Report>("ablation.json"),
    sweep = read<{ results: SweepRow[] }>("pruning.json");
  const tables = {
    ...(report && tablesOf(report)),
    ...(sweep && { pruning: markdown(sweep.results.filter(({ mass }) => mass < 1).map(pruned)) }),
  };
  const page = new URL("ablation.md", docs);
  writeFileSync(page, fillIn(readFileSync(page, "utf8"), tables));
}
