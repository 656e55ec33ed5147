/**
 * The sequences that wait for a place, best order key first: a binary heap that also removes from the
 * middle, for aborts. Keys that go stale are worked out anew slice by slice, so that no step pays for
 * all of a long queue.
 */
import { runsBefore } from "./policy.ts";

export interface Waiter {
  readonly id: number;
  /** Order key; must not change while it waits, but by `refresh`. */
  key: number;
  /** Owned by the queue: the place in the heap, or -1 outside it. */
  heapIndex: number;
}

export class WaitingQueue<T extends Waiter> {
  readonly #heap: T[] = [];
  /** Waiters by `id` modulo the number of slices. */
  readonly #slices: readonly Set<T>[];
  #next = 0;

  /** @param slices In how many calls of `refresh` every key is worked out anew. */
  constructor(slices = 1) {
    this.#slices = Array.from({ length: slices }, () => new Set<T>());
  }

  get size(): number {
    return this.#heap.length;
  }

  peek(): T | undefined {
    return this.#heap[0];
  }

  push(waiter: T): void {
    this.#sliceOf(waiter).add(waiter);
    this.#heap.push(waiter);
    this.#up(waiter, this.#heap.length - 1);
  }

  /** Takes out a waiter from wherever it stands; does nothing when it is not here. */
  remove(waiter: T): void {
    const index = waiter.heapIndex;
    if (index < 0) return;
    waiter.heapIndex = -1;
    this.#sliceOf(waiter).delete(waiter);
    const last = this.#heap.pop();
    if (last === undefined || last === waiter) return;
    this.#up(last, index);
    this.#down(last, last.heapIndex);
  }

  /** Works out the keys of the next slice anew. */
  refresh(key: (waiter: T) => number): void {
    const slice = this.#slices[this.#next++ % this.#slices.length] as Set<T>;
    for (const waiter of slice) {
      waiter.key = key(waiter);
      this.#up(waiter, waiter.heapIndex);
      this.#down(waiter, waiter.heapIndex);
    }
  }

  /** In no particular order. */
  [Symbol.iterator](): Iterator<T> {
    return this.#heap[Symbol.iterator]();
  }

  #sliceOf(waiter: T): Set<T> {
    return this.#slices[waiter.id % this.#slices.length] as Set<T>;
  }

  #up(waiter: T, from: number): void {
    let index = from;
    while (index > 0) {
      const parent = this.#heap[(index - 1) >> 1] as T;
      if (!runsBefore(waiter, parent)) break;
      this.#set(index, parent);
      index = (index - 1) >> 1;
    }
    this.#set(index, waiter);
  }

  #down(waiter: T, from: number): void {
    let index = from;
    for (;;) {
      const left = this.#heap[2 * index + 1], right = this.#heap[2 * index + 2];
      if (left === undefined) break;
      const child = right !== undefined && runsBefore(right, left) ? right : left;
      if (!runsBefore(child, waiter)) break;
      const place = child.heapIndex;
      this.#set(index, child);
      index = place;
    }
    this.#set(index, waiter);
  }

  #set(index: number, waiter: T): void {
    this.#heap[index] = waiter;
    waiter.heapIndex = index;
  }
}
