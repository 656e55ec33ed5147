import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { BLOCK_SIZE } from "../backend.ts";
import { type BlockHash, BlockPool, hashBlock } from "./block_pool.ts";

/** `blocks` full blocks of tokens, each filled with one number. */
function chain(...fills: number[]): number[] {
  return fills.flatMap((fill) => new Array<number>(BLOCK_SIZE).fill(fill));
}

/** Allocates and commits a whole chain, as a sequence would. */
function store(pool: BlockPool, tokens: readonly number[], salt = ""): number[] {
  const table: number[] = [];
  let prefix = pool.root(salt);
  for (let start = 0; start < tokens.length; start += BLOCK_SIZE) {
    const block = pool.commit(pool.allocate(), prefix, tokens, start);
    table.push(block);
    prefix = pool.prefixOf(block);
  }
  return table;
}

function find(pool: BlockPool, tokens: readonly number[], salt = ""): readonly number[] {
  return pool.match(pool.root(salt), tokens, Math.floor(tokens.length / BLOCK_SIZE)).blocks;
}

Deno.test("BlockPool hands out every block once and then throws", () => {
  const pool = new BlockPool(5);
  const blocks = Array.from({ length: 5 }, () => pool.allocate());
  assertEquals(blocks.toSorted(), [0, 1, 2, 3, 4]);
  assertEquals(pool.free, 0);
  assertThrows(() => pool.allocate(), RangeError, "all 5 are in use");
});

Deno.test("BlockPool frees a shared block only with its last reference", () => {
  const pool = new BlockPool(4);
  const table = store(pool, chain(1));
  pool.acquire(find(pool, chain(1)));
  pool.release(table);
  assertEquals(pool.free, 3);
  pool.release(table);
  assertEquals([pool.free, pool.cached], [4, 1]);
  assertThrows(() => pool.release(table), RangeError, "nobody holds it");
});

Deno.test("BlockPool finds the longest stored prefix and says what of it is free", () => {
  const pool = new BlockPool(8);
  const table = store(pool, chain(1, 2, 3));
  assertEquals(find(pool, chain(1, 2, 4)), table.slice(0, 2));
  assertEquals(find(pool, chain(2, 2, 3)), []);
  assertEquals(pool.match(pool.root(""), chain(1, 2, 3), 1).blocks, table.slice(0, 1));
  assertEquals(pool.match(pool.root(""), chain(1, 2, 3), 3).idle, 0);
  pool.release(table);
  assertEquals(pool.match(pool.root(""), chain(1, 2, 3), 3).idle, 3);
});

Deno.test("BlockPool keeps the same tokens after different parents, or salts, apart", () => {
  const pool = new BlockPool(8);
  const first = store(pool, chain(1, 9)), second = store(pool, chain(2, 9));
  assertNotEquals(first[1], second[1]);
  assertEquals(find(pool, chain(2, 9)), second);
  assertEquals(find(pool, chain(1, 9), "pruned"), []);
});

Deno.test("BlockPool lets equal blocks become one", () => {
  const pool = new BlockPool(8);
  const first = store(pool, chain(1, 2)), second = store(pool, chain(1, 2));
  assertEquals(second, first);
  assertEquals(pool.free, 6);
  assertEquals(first.map((block) => pool.references(block)), [2, 2]);
});

Deno.test("BlockPool gives up blocks without a prefix first, then the least recently used", () => {
  const pool = new BlockPool(5);
  const old = store(pool, chain(1, 2)), recent = store(pool, chain(3));
  pool.release(old);
  pool.release(recent);
  pool.acquire(old);
  pool.release(old);
  assertEquals(Array.from({ length: 5 }, () => pool.allocate()).slice(2), [
    recent[0],
    old[1],
    old[0],
  ]);
  assertEquals(pool.cached, 0);
  assertEquals(find(pool, chain(1)), []);
});

Deno.test("BlockPool never finds a block again whose content was overwritten", () => {
  const pool = new BlockPool(2);
  pool.release(store(pool, chain(1, 2)));
  const table = store(pool, chain(7));
  assertEquals(find(pool, chain(7, 2)), table);
  assertEquals(find(pool, chain(1, 2)).length, 1);
});

Deno.test("BlockPool does not give an old block a new parent", () => {
  const pool = new BlockPool(3);
  const table = store(pool, chain(1, 2));
  pool.release(table.slice(0, 1));
  pool.release([pool.allocate(), pool.allocate()]);
  const parent = store(pool, chain(1));
  assertEquals(find(pool, chain(1, 2)), parent);
});

Deno.test("BlockPool.forget takes held blocks out of the index for good", () => {
  const pool = new BlockPool(4);
  const table = store(pool, chain(1, 2));
  pool.forget(table);
  assertEquals(find(pool, chain(1, 2)), []);
  pool.release(table);
  assertEquals([pool.free, pool.cached], [4, 0]);
});

Deno.test("BlockPool verifies tokens where hashes collide", () => {
  const pool = new BlockPool(16, () => 1);
  const tables = [1, 2, 3].map((fill) => store(pool, chain(fill, 9)));
  for (const [i, table] of tables.entries()) assertEquals(find(pool, chain(i + 1, 9)), table);
  pool.forget(tables[1]!);
  assertEquals(find(pool, chain(2, 9)), []);
  assertEquals(find(pool, chain(1, 9)), tables[0]);
  assertEquals(find(pool, chain(3, 9)), tables[2]);
});

Deno.test("hashBlock depends on the parent and on every token", () => {
  const tokens = Array.from({ length: BLOCK_SIZE }, (_, i) => i);
  const hashes = new Set([hashBlock(1, tokens, 0), hashBlock(2, tokens, 0)]);
  for (let i = 0; i < BLOCK_SIZE; i++) hashes.add(hashBlock(1, tokens.with(i, 77), 0));
  assertEquals(hashes.size, BLOCK_SIZE + 2);
});

Deno.test("BlockPool agrees with a plain model of itself", () => {
  const weak: BlockHash = (parent, tokens, start) => (parent + (tokens[start] as number)) % 3;
  const action = fc.record({ kind: fc.nat(3), fills: fc.array(fc.nat(2), { maxLength: 4 }) });
  fc.assert(fc.property(fc.array(action, { maxLength: 60 }), fc.boolean(), (actions, collide) => {
    const pool = new BlockPool(12, collide ? weak : hashBlock);
    const held: { table: number[]; tokens: number[] }[] = [];
    for (const { kind, fills } of actions) {
      const tokens = chain(...fills);
      if (kind === 0) {
        const one = held.shift();
        if (one !== undefined) pool.release(one.table);
      } else if (kind === 1) {
        const one = held.at(-1);
        if (one !== undefined) pool.forget(one.table);
      } else {
        const { blocks, idle } = pool.match(pool.root(""), tokens, fills.length);
        if (fills.length - blocks.length + idle > pool.free) continue;
        pool.acquire(blocks);
        const table = [...blocks];
        let prefix = blocks.length === 0 ? pool.root("") : pool.prefixOf(blocks.at(-1)!);
        for (let i = blocks.length; i < fills.length; i++) {
          table.push(pool.commit(pool.allocate(), prefix, tokens, i * BLOCK_SIZE));
          prefix = pool.prefixOf(table[i]!);
        }
        held.push({ table, tokens });
      }
      const holders = new Map<number, number>();
      for (const { table } of held) {
        for (const block of table) holders.set(block, (holders.get(block) ?? 0) + 1);
      }
      assertEquals(pool.free, pool.total - holders.size);
      assert(pool.cached <= pool.free);
      for (const [block, count] of holders) assertEquals(pool.references(block), count);
      for (const a of held) {
        for (const b of held) {
          a.table.forEach((block, i) => {
            if (b.table[i] !== block) return;
            const end = (i + 1) * BLOCK_SIZE;
            assertEquals(a.tokens.slice(0, end), b.tokens.slice(0, end));
          });
        }
      }
    }
    for (const { table } of held) pool.release(table);
    assertEquals(pool.free, pool.total);
  }));
});
