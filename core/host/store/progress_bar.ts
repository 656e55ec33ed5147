/** Shows transfers to a person: a bar that moves on a terminal, a line now and then elsewhere. */
import type { ReportProgress, TransferProgress } from "./transfer_meter.ts";

/** What is needed of `process.stderr`. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Off a terminal, a line each time that so many percent more are there. */
const LINE_EVERY_PERCENT = 10;

/** Off a terminal, where the total is not known: a line each so many bytes. */
const LINE_EVERY_BYTES = 25_000_000;

const BAR_WIDTH = 24;

/** Takes the reports of `resolveModel` and writes them out. */
export function progressBar(output: ProgressOutput): ReportProgress {
  return output.isTTY ? movingBar(output) : occasionalLines(output);
}

function movingBar(output: ProgressOutput): ReportProgress {
  return (progress) => {
    const width = (output.columns ?? 80) - 1;
    const text = figures(progress);
    // The figures matter more than the bar, which takes what they and the name leave.
    const left = Math.min(BAR_WIDTH, width - progress.name.length - text.length - 4);
    const line = [progress.name, ...left >= 6 ? [bar(progress, left)] : [], text].join(" ");
    output.write(`\r${line.slice(0, width).padEnd(width)}${progress.done ? "\n" : ""}`);
  };
}

function occasionalLines(output: ProgressOutput): ReportProgress {
  let name: string | undefined;
  let next = 0;
  return (progress) => {
    const { bytes, total } = progress;
    if (progress.name !== name) {
      name = progress.name;
      next = 0;
    }
    const [position, step] = total
      ? [100 * bytes / total, LINE_EVERY_PERCENT]
      : [bytes, LINE_EVERY_BYTES];
    if (position < next && !progress.done) return;
    next = (Math.floor(position / step) + 1) * step;
    output.write(`${progress.name} ${figures(progress)}\n`);
  };
}

function bar({ bytes, total }: TransferProgress, width: number): string {
  const share = total ? Math.min(1, bytes / total) : 0;
  const full = Math.round(share * width);
  return `[${"#".repeat(full)}${"-".repeat(width - full)}]`;
}

function figures({ bytes, total, bytesPerSecond, secondsLeft, done }: TransferProgress): string {
  const parts = total
    ? [`${Math.floor(100 * bytes / total)}%`, `${megabytes(bytes)} of ${megabytes(total)}`]
    : [megabytes(bytes)];
  if (bytesPerSecond > 0) parts.push(`${megabytes(bytesPerSecond)}/s`);
  if (!done && secondsLeft !== undefined) parts.push(`${duration(secondsLeft)} left`);
  return parts.join(", ");
}

/** In powers of 1000, as download sites count. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
