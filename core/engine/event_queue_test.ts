import { assert, assertEquals, assertFalse, assertRejects } from "@std/assert";
import type { SequenceEvent } from "./engine.ts";
import { EventQueue } from "./event_queue.ts";

const token = (id: number): SequenceEvent => ({
  type: "token",
  token: id,
  logprob: 0,
  entropy: 0,
  varentropy: 0,
  endProbability: 0,
  temperature: 1,
  top: [],
});

function queueOf(capacity: number) {
  const calls: string[] = [];
  const queue = new EventQueue(capacity, {
    drained: () => calls.push("drained"),
    abandoned: () => calls.push("abandoned"),
  });
  return { queue, calls };
}

async function ids(queue: EventQueue): Promise<number[]> {
  const got: number[] = [];
  for await (const event of queue) if (event.type === "token") got.push(event.token);
  return got;
}

Deno.test("EventQueue hands events over in order, before and after they are asked for", async () => {
  const { queue } = queueOf(8);
  queue.push(token(1));
  queue.push(token(2));
  const reading = ids(queue);
  await Promise.resolve();
  queue.push(token(3));
  queue.end();
  assertEquals(await reading, [1, 2, 3]);
});

Deno.test("EventQueue stalls when full and drains at half, once", async () => {
  const { queue, calls } = queueOf(4);
  for (let id = 0; id < 4; id++) queue.push(token(id));
  assert(queue.stalled);
  await queue.next();
  assert(queue.stalled);
  assertEquals(calls, []);
  await queue.next();
  assertFalse(queue.stalled);
  await queue.next();
  assertEquals(calls, ["drained"]);
});

Deno.test("EventQueue takes the last event even when full", async () => {
  const { queue } = queueOf(1);
  queue.push(token(1));
  queue.push(token(2));
  queue.end();
  assertEquals(await ids(queue), [1, 2]);
});

Deno.test("EventQueue throws its error after what was unread, and only once", async () => {
  const { queue } = queueOf(8);
  queue.push(token(1));
  queue.fail(new Error("lost"));
  assertEquals((await queue.next()).value, token(1));
  await assertRejects(() => queue.next(), Error, "lost");
  assertEquals((await queue.next()).done, true);
});

Deno.test("EventQueue wakes every reader at the end", async () => {
  const { queue } = queueOf(8);
  const readers = [queue.next(), queue.next()];
  queue.end();
  assertEquals((await Promise.all(readers)).map((result) => result.done), [true, true]);
});

Deno.test("EventQueue tells the engine of a reader that leaves early, and of no other", async () => {
  const { queue, calls } = queueOf(8);
  queue.push(token(1));
  for await (const _ of queue) break;
  assertEquals(calls, ["abandoned"]);
  assertEquals((await queue.next()).done, true);

  const finished = queueOf(8);
  finished.queue.end();
  await finished.queue.return();
  assertEquals(finished.calls, []);
});
