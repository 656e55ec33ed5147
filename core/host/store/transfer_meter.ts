/** Speed and time left of a transfer, from the bytes as they come in. */

/** How far a transfer is. */
export interface TransferProgress {
  /** What is transferred, for people. */
  readonly name: string;
  /** Bytes so far, those of an earlier run included. */
  readonly bytes: number;
  /** Bytes in all, where the source says. */
  readonly total: number | undefined;
  /** Over the last seconds. */
  readonly bytesPerSecond: number;
  readonly secondsLeft: number | undefined;
  /** Whether this is the last report of this transfer. */
  readonly done: boolean;
}

export type ReportProgress = (progress: TransferProgress) => void;

/** Milliseconds between reports. */
const REPORT_EVERY = 100;

/** Milliseconds over which speed is averaged. */
const SPEED_WINDOW = 3000;

export class TransferMeter {
  readonly #name: string;
  readonly #report: ReportProgress;
  readonly #now: () => number;
  /** `[time, bytes]` at the reports within the window, oldest first. */
  #samples: (readonly [time: number, bytes: number])[] = [];
  #lastReport = -Infinity;
  #bytes = 0;
  #total: number | undefined;

  /** @param now Milliseconds that only grow. */
  constructor(name: string, report: ReportProgress, now = () => performance.now()) {
    this.#name = name;
    this.#report = report;
    this.#now = now;
  }

  /** Starts, or starts again, with some bytes already there. */
  start(bytes: number, total: number | undefined): void {
    this.#total = total;
    this.#samples = [[this.#now(), bytes]];
    this.#lastReport = -Infinity;
    this.moveTo(bytes);
  }

  /** Says how many bytes there are in all, where that became known only later. */
  setTotal(total: number | undefined): void {
    this.#total = total;
  }

  /** @param bytes Bytes so far. */
  moveTo(bytes: number): void {
    this.#bytes = bytes;
    if (this.#now() - this.#lastReport >= REPORT_EVERY) this.#send(false);
  }

  done(): void {
    this.#send(true);
  }

  #send(done: boolean): void {
    const now = this.#now();
    this.#lastReport = now;
    this.#samples.push([now, this.#bytes]);
    const recent = this.#samples.findIndex(([time]) => time >= now - SPEED_WINDOW);
    this.#samples = this.#samples.slice(recent);
    const [time, bytes] = this.#samples[0] ?? [now, this.#bytes];
    const speed = now > time ? 1000 * (this.#bytes - bytes) / (now - time) : 0;
    this.#report({
      name: this.#name,
      bytes: this.#bytes,
      total: this.#total,
      bytesPerSecond: speed,
      secondsLeft: this.#total !== undefined && speed > 0
        ? Math.max(0, this.#total - this.#bytes) / speed
        : undefined,
      done,
    });
  }
}
