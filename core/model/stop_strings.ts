/**
 * Finds stop strings in a text that arrives in pieces, in one pass however many there are: the
 * automaton of Aho and Corasick (1975) over UTF-16 code units.
 */

interface State {
  readonly next: Map<number, number>;
  /** The state of the longest proper suffix that a stop string begins with. */
  fallback: number;
  /** Code units of the text that may be the beginning of a stop string. */
  readonly depth: number;
  /** Length of the longest stop string that ends here, or 0. */
  stop: number;
}

const ROOT = 0;

export class StopStrings {
  readonly #states: State[] = [newState(0)];

  /** @throws {RangeError} A stop string is empty. */
  constructor(stops: readonly string[]) {
    for (const stop of stops) {
      if (stop === "") {
        throw new RangeError(
          "Cannot use stop string: current value is empty, must have a character",
        );
      }
      // A lone surrogate cannot occur in a decoded text; U+FFFD can.
      this.#add(stop.toWellFormed());
    }
    this.#link();
  }

  /** The state before any text. */
  readonly start = ROOT;

  /** The state after one more code unit. */
  step(state: number, unit: number): number {
    for (let at = state; at !== ROOT; at = this.#at(at).fallback) {
      const next = this.#at(at).next.get(unit);
      if (next !== undefined) return next;
    }
    return this.#at(ROOT).next.get(unit) ?? ROOT;
  }

  /** How many of the latest code units may be the beginning of a stop string. */
  held(state: number): number {
    return this.#at(state).depth;
  }

  /** Length of the longest stop string that ends at this state, or 0. */
  match(state: number): number {
    return this.#at(state).stop;
  }

  #at(index: number): State {
    const state = this.#states[index];
    if (state === undefined) throw new RangeError(`Cannot read state: current value is ${index}`);
    return state;
  }

  #add(stop: string): void {
    let index = ROOT;
    for (let i = 0; i < stop.length; i++) {
      const state = this.#at(index);
      const unit = stop.charCodeAt(i);
      let next = state.next.get(unit);
      if (next === undefined) {
        next = this.#states.push(newState(state.depth + 1)) - 1;
        state.next.set(unit, next);
      }
      index = next;
    }
    this.#at(index).stop = stop.length;
  }

  /** Sets fallbacks, shortest states first, so that those of a state's fallback are known. */
  #link(): void {
    const queue = [...this.#at(ROOT).next.values()];
    for (const index of queue) {
      const state = this.#at(index);
      state.stop ||= this.#at(state.fallback).stop;
      for (const [unit, next] of state.next) {
        this.#at(next).fallback = this.step(state.fallback, unit);
        queue.push(next);
      }
    }
  }
}

function newState(depth: number): State {
  return { next: new Map(), fallback: ROOT, depth, stop: 0 };
}
