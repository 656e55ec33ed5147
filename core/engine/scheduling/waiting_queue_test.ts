import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { runsBefore } from "./policy.ts";
import { type Waiter, WaitingQueue } from "./waiting_queue.ts";

function drain(queue: WaitingQueue<Waiter>): number[] {
  const ids: number[] = [];
  for (let next = queue.peek(); next !== undefined; next = queue.peek()) {
    ids.push(next.id);
    queue.remove(next);
    assertEquals(next.heapIndex, -1);
  }
  return ids;
}

function waitersOf(keys: readonly number[]): Waiter[] {
  return keys.map((key, id) => ({ id, key, heapIndex: -1 }));
}

function ordered(waiters: readonly Waiter[]): number[] {
  return waiters.toSorted((a, b) => runsBefore(a, b) ? -1 : 1).map(({ id }) => id);
}

const keys = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 60 });

Deno.test("WaitingQueue gives waiters by key, ties by id, also after removals from the middle", () => {
  fc.assert(fc.property(keys, fc.array(fc.nat(59)), (given, gone) => {
    const queue = new WaitingQueue<Waiter>();
    const waiters = waitersOf(given);
    for (const waiter of waiters) queue.push(waiter);
    for (const index of gone) {
      const waiter = waiters[index];
      if (waiter !== undefined) queue.remove(waiter);
    }
    const left = waiters.filter(({ id }) => !gone.includes(id));
    assertEquals(queue.size, left.length);
    assertEquals(new Set([...queue].map(({ id }) => id)), new Set(left.map(({ id }) => id)));
    assertEquals(drain(queue), ordered(left));
  }));
});

Deno.test("WaitingQueue.refresh orders by the new keys, slice by slice", () => {
  const modulus = fc.integer({ min: 1, max: 30 }), slices = fc.integer({ min: 1, max: 8 });
  fc.assert(fc.property(keys, modulus, slices, (given, modulus, slices) => {
    const queue = new WaitingQueue<Waiter>(slices);
    const waiters = waitersOf(given);
    for (const waiter of waiters) queue.push(waiter);
    const refreshed: number[] = [];
    for (let call = 0; call < slices; call++) {
      const before = refreshed.length;
      queue.refresh(({ id }) => {
        refreshed.push(id);
        return (id * 7) % modulus;
      });
      assert(refreshed.length - before <= Math.ceil(waiters.length / slices));
    }
    assertEquals(refreshed.toSorted((a, b) => a - b), waiters.map(({ id }) => id));
    assertEquals(drain(queue), ordered(waiters));
  }));
});
