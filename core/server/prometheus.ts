/**
 * Counters, gauges and histograms in Prometheus' text format 0.0.4. `prom-client` would do, but it
 * loads `cluster`, `http`, `zlib` and OpenTelemetry, which edge hosts and browsers do not have; the
 * tests hold this writer against it.
 */

export const PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export type Labels = Readonly<Record<string, string>>;

type MetricType = "counter" | "gauge" | "histogram";

interface Metric {
  readonly type: MetricType;
  lines(name: string): Iterable<string>;
}

/** A value that is set, or that only grows. */
class Values implements Metric {
  readonly type: MetricType;
  #values = new Map<string, number>();

  constructor(type: "counter" | "gauge") {
    this.type = type;
  }

  add(labels: Labels = {}, amount = 1): void {
    const key = showLabels(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  set(value: number, labels: Labels = {}): void {
    this.#values.set(showLabels(labels), value);
  }

  *lines(name: string): Iterable<string> {
    for (const [labels, value] of this.#values) yield `${name}${labels} ${showNumber(value)}`;
  }
}

interface Series {
  readonly labels: Labels;
  /** Observations in each bucket alone; one more than bounds, for those above the last. */
  readonly counts: number[];
  sum: number;
}

class Histogram implements Metric {
  readonly type = "histogram";
  #bounds: readonly number[];
  #series = new Map<string, Series>();

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
  }

  observe(value: number, labels: Labels = {}): void {
    const key = showLabels(labels);
    let series = this.#series.get(key);
    if (series === undefined) {
      series = { labels, counts: [...this.#bounds.map(() => 0), 0], sum: 0 };
      this.#series.set(key, series);
    }
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    const index = bucket < 0 ? this.#bounds.length : bucket;
    series.counts[index] = (series.counts[index] ?? 0) + 1;
    series.sum += value;
  }

  *lines(name: string): Iterable<string> {
    for (const [key, { labels, counts, sum }] of this.#series) {
      let below = 0;
      for (const [index, count] of counts.entries()) {
        below += count;
        const le = showNumber(this.#bounds[index] ?? Infinity);
        yield `${name}_bucket${showLabels({ le, ...labels })} ${below}`;
      }
      yield `${name}_sum${key} ${showNumber(sum)}`;
      yield `${name}_count${key} ${below}`;
    }
  }
}

export type { Histogram, Values };

/** Metrics by name, written in the order of their registration. */
export class Registry {
  #metrics = new Map<string, { readonly help: string; readonly metric: Metric }>();

  counter(name: string, help: string): Values {
    return this.#register(name, help, new Values("counter"));
  }

  gauge(name: string, help: string): Values {
    return this.#register(name, help, new Values("gauge"));
  }

  /** @param bounds Upper bounds of the buckets, ascending; one up to infinity is added. */
  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    return this.#register(name, help, new Histogram(bounds));
  }

  toString(): string {
    let text = "";
    for (const [name, { help, metric }] of this.#metrics) {
      text += `# HELP ${name} ${help}\n# TYPE ${name} ${metric.type}\n`;
      for (const line of metric.lines(name)) text += `${line}\n`;
    }
    return text;
  }

  #register<M extends Metric>(name: string, help: string, metric: M): M {
    if (this.#metrics.has(name)) {
      throw new TypeError(`Cannot register the metric ${name}: it is already registered`);
    }
    this.#metrics.set(name, { help, metric });
    return metric;
  }
}

function showLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escape(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escape(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function showNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}
