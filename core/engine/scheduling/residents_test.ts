import { assert, assertEquals } from "@std/assert";
import { BlockPool } from "../kv/block_pool.ts";
import { EventQueue } from "../event_queue.ts";
import { Residents } from "./residents.ts";
import { ScheduledStep } from "./scheduled_step.ts";
import { Sequence } from "../sequence.ts";
import { chooseRoot } from "../kv/sequence_blocks.ts";

const BLOCKS = 6, BLOCK_BYTES = 10;

/** Residents of a small pool, and a way to let sequences in by the order of their ids. */
function setUp(hostBytes: number) {
  const pool = new BlockPool(BLOCKS);
  const lost: number[] = [];
  const residents = new Residents(pool, { hostBytes, blockBytes: BLOCK_BYTES }, ({ id }) => {
    lost.push(id);
  });
  const step = new ScheduledStep(0, 100, 100);
  const admit = (id: number, tokens: number) => {
    const events = new EventQueue(Infinity, { drained: () => {}, abandoned: () => {} });
    const request = {
      prompt: Array.from({ length: tokens }, (_, i) => 100 * id + i),
      maxTokens: 50,
      sampling: { seed: 0n },
    };
    const sequence = new Sequence(id, request, { events, arrival: 0, endTokens: [] });
    sequence.key = id;
    chooseRoot(pool, sequence);
    const find = () => pool.match(sequence.root, sequence.tokens, sequence.reusableBlocks);
    return { sequence, admitted: residents.admit(sequence, find, step) };
  };
  return { pool, residents, step, lost, admit };
}

Deno.test("Residents takes blocks from who runs last, for those who run earlier only", () => {
  const { pool, residents, lost, admit } = setUp(1000);
  assert(admit(2, 32).admitted && admit(3, 16).admitted);
  assert(!residents.short);
  assert(!admit(4, 32).admitted, "a later one finds no room");
  assert(residents.short);
  assertEquals(lost, []);
  assert(admit(1, 32).admitted);
  assertEquals(lost, [3]);
  assertEquals(residents.list.map(({ id }) => id), [1, 2]);
  assertEquals([residents.preemptions, pool.free], [1, 2]);
});

Deno.test("Residents swaps what was computed to host memory while that has room", () => {
  const { residents, step, admit } = setUp(BLOCK_BYTES);
  const { sequence: small } = admit(3, 16), { sequence: large } = admit(2, 32);
  small.computed = 10;
  large.computed = 32;
  assert(admit(1, 80).admitted);
  assertEquals(step.swapOuts.map(({ sequence }) => sequence.id), [3]);
  assertEquals(small.host?.positions, 10);
  assertEquals([large.host, large.phase], [undefined, "waiting"]);
  residents.dropHostCopy(small);
  assertEquals(small.host, undefined);
});

Deno.test("Residents keeps the copy of one that comes back and has to go again in one step", () => {
  const { pool, residents, step, admit } = setUp(2 * BLOCK_BYTES);
  const { sequence } = admit(3, 32);
  sequence.computed = 32;
  const { sequence: first } = admit(2, 80);
  const { host } = sequence;
  residents.release(first);
  const found = pool.match(sequence.root, sequence.tokens, sequence.reusableBlocks);
  assert(residents.admit(sequence, () => found, step));
  assertEquals([step.swapIns.length, sequence.computed], [1, 32]);
  assert(admit(1, 80).admitted);
  assertEquals(step.swapIns, []);
  assertEquals(step.swapOuts.length, 1, "what it was given back is not there to be read");
  assert(sequence.host === host && host !== undefined);
});

Deno.test("Residents gives a sequence its next block, unless it is the one to give", () => {
  const { residents, step, lost, admit } = setUp(0);
  const { sequence: first } = admit(1, 32), { sequence: last } = admit(2, 32);
  const generate = (sequence: Sequence, count: number) => {
    for (let i = 0; i < count; i++) sequence.append(i);
  };
  for (const sequence of [first, last]) {
    generate(sequence, 1);
    assert(residents.reserve(sequence, step));
    assert(residents.reserve(sequence, step), "it has it already");
    assertEquals(sequence.blocks.length, 3);
  }
  generate(last, 16);
  assert(!residents.reserve(last, step), "nobody runs later");
  assertEquals([lost, last.phase, residents.short], [[2], "waiting", true]);
  generate(first, 16);
  assert(residents.reserve(first, step));
});
