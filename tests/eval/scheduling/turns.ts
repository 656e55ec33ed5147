/**
 * Lets several engines step in turns, so that whatever slows the machine down for a while slows all
 * of them alike.
 */
import type { Backend } from "../../../core/engine/backend.ts";

/**
 * A backend whose engine steps when its turn comes. A turn lasts to the engine's next step, for until
 * then it may read the rows of the last one, or to the backend's end.
 */
export function inTurn(backend: Backend, turns: Turns, player: number): Backend {
  return {
    ...backend,
    async forward(batch, signal) {
      await turns.take(player);
      return await backend.forward(batch, signal);
    },
    async dispose() {
      await backend.dispose();
      turns.leave(player);
    },
  };
}

/** They go round. Who has the turn passes it on by asking for the next. */
export class Turns {
  readonly #waiting = new Map<number, () => void>();
  /** Who takes part, in order; the first is next. */
  #order: number[];
  #holder: number | undefined;

  constructor(players: number) {
    this.#order = Array.from({ length: players }, (_, player) => player);
  }

  /** Ends the player's turn, if it has one, and resolves when its next one comes. */
  async take(player: number): Promise<void> {
    const turn = new Promise<void>((resolve) => this.#waiting.set(player, resolve));
    if (this.#holder === player) this.#holder = undefined;
    this.#pass();
    await turn;
  }

  /** Takes no more turns. */
  leave(player: number): void {
    this.#order = this.#order.filter((other) => other !== player);
    if (this.#holder === player) this.#holder = undefined;
    this.#pass();
  }

  /** Gives the turn to the next player, once that has asked for it. */
  #pass(): void {
    const [next] = this.#order;
    if (this.#holder !== undefined || next === undefined) return;
    const start = this.#waiting.get(next);
    if (start === undefined) return;
    this.#waiting.delete(next);
    this.#holder = next;
    this.#order = [...this.#order.slice(1), next];
    start();
  }
}
