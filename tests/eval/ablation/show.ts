/** Rows of the table as lines for people. */
import type { Interval } from "../bootstrap.ts";
import type { Row, Synergy } from "./table.ts";

export function showRow({ workload, policy, ratios, quality, absolute }: Row): string {
  const { ppl_ratio, kl, top1 } = quality;
  const figure = (value: number | null, digits: number) => value?.toFixed(digits) ?? "?";
  return [
    workload.padEnd(13),
    policy.padEnd(21),
    `latency ${interval(ratios.latency)}`,
    `throughput ${interval(ratios.throughput)}`,
    `dtau/dC ${interval(ratios.dtau_dc)}`,
    `ppl ${figure(ppl_ratio, 4)} kl ${figure(kl, 4)} top1 ${figure(top1, 3)}`,
    `attention ${absolute.attention_bytes.toFixed(2)}`,
  ].join("  ");
}

export function showSynergy({ workload, column, all, product, excess }: Synergy): string {
  return `${workload.padEnd(13)} synergy in ${column.padEnd(11)} all ${all.toFixed(3)}, ` +
    `product of parts ${product.toFixed(3)}, all / product ${interval(excess, 3)}`;
}

export function interval({ value, low, high }: Interval, digits = 2): string {
  return `${value.toFixed(digits)} [${low.toFixed(digits)}, ${high.toFixed(digits)}]`;
}
