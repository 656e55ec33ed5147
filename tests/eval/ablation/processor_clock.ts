/**
 * A clock for timing an engine in this thread: it runs with the processor time of this process, so
 * that what else the machine does shows as little as it can, and skips the time between arrivals.
 */
import process from "node:process";

export class ProcessorClock {
  #skipped = 0;
  #held: number | undefined;

  /** Milliseconds; never goes back, but for `at`. */
  readonly now = (): number => this.#held ?? processorTime() + this.#skipped;

  /** Jumps ahead to a time, if it has not come yet. */
  skipTo(time: number): void {
    this.#skipped += Math.max(0, time - this.now());
  }

  /** Runs `work` as if it were that time. */
  at<T>(time: number, work: () => T): T {
    this.#held = time;
    try {
      return work();
    } finally {
      this.#held = undefined;
    }
  }
}

/** Milliseconds, of all threads of this process. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
