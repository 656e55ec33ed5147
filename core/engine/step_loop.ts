/** Runs steps while there is something to do, lets the event loop in between, and else sleeps. */
import { yieldToEventLoop } from "./yield_to_event_loop.ts";

export class StepLoop {
  readonly #step: () => Promise<boolean>;
  #wanted = false;
  #running: Promise<void> | undefined;

  /** @param step Does one step; answers whether there was anything to do. Must not reject. */
  constructor(step: () => Promise<boolean>) {
    this.#step = step;
  }

  /** There may be something to do. */
  wake(): void {
    this.#wanted = true;
    this.#running ??= this.#run();
  }

  /** Resolves when there is nothing left to do. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // The first yield lets requests that come together start together.
    do {
      await yieldToEventLoop();
      this.#wanted = false;
      if (await this.#step()) this.#wanted = true;
    } while (this.#wanted);
    this.#running = undefined;
  }
}
