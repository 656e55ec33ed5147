import { assert, assertEquals, assertRejects } from "@std/assert";
import { promptOf, read, request, run } from "../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../tests/support/scripted_backend.ts";
import { BackendError } from "../errors.ts";
import type { SequenceStream } from "./engine.ts";
import { LocalEngine } from "./local_engine.ts";

/** An engine whose forwards wait until they are let through. */
function steppedEngine(limits: ScriptedOptions["limits"] = {}) {
  let arrived = Promise.withResolvers<void>(), passed = Promise.withResolvers<void>();
  const backend = new ScriptedBackend({
    limits,
    onForward: async () => {
      arrived.resolve();
      await passed.promise;
    },
  });
  const engine = new LocalEngine(backend);
  return {
    engine,
    backend,
    /** Waits until a forward is in flight. */
    inFlight: () => arrived.promise,
    /** Lets the one in flight finish, and waits for the next. */
    async pass(): Promise<void> {
      const { resolve } = passed;
      arrived = Promise.withResolvers();
      passed = Promise.withResolvers();
      resolve();
      await arrived.promise;
    },
    /** Lets everything through from now on. */
    open(): void {
      passed.resolve();
    },
  };
}

async function assertAborted(engine: LocalEngine, stream: SequenceStream): Promise<void> {
  const { end } = await read(stream);
  assertEquals(end.reason, "abort");
  const stats = await engine.stats();
  assertEquals(stats.kvBlocksFree, stats.kvBlocksTotal);
  assertEquals(stats.finished.abort, 1);
}

Deno.test("LocalEngine frees a sequence that is aborted before its first step", async () => {
  const { engine } = steppedEngine();
  const stream = await engine.submit(request(promptOf(40)));
  stream.abort();
  await assertAborted(engine, stream);
});

Deno.test("LocalEngine frees a sequence that is aborted while queued", async () => {
  const { engine, inFlight, open } = steppedEngine({ kvBlocks: 4 });
  const first = await engine.submit(request(promptOf(40)));
  await inFlight();
  const queued = await engine.submit(request(promptOf(41, 2)));
  queued.abort();
  open();
  assertEquals((await read(queued)).end.reason, "abort");
  assertEquals((await read(first)).end.reason, "length");
});

Deno.test("LocalEngine frees a sequence that is aborted while it prefills", async () => {
  const { engine, inFlight, pass, open } = steppedEngine({ maxBatchTokens: 16 });
  const stream = await engine.submit(request(promptOf(100)));
  await inFlight();
  await pass();
  stream.abort();
  stream.abort();
  open();
  await assertAborted(engine, stream);
});

Deno.test("LocalEngine frees a sequence that is aborted while it decodes", async () => {
  const { engine, backend, inFlight, pass, open } = steppedEngine();
  const stream = await engine.submit(request(promptOf(20), { ignoreEos: true }));
  await inFlight();
  await pass();
  await pass();
  stream.abort();
  open();
  await assertAborted(engine, stream);
  assertEquals(backend.forwards, 3, "the step in flight was the last");
});

Deno.test("LocalEngine ends a sequence once that is aborted in its final step", async () => {
  const { engine, inFlight, open } = steppedEngine();
  const stream = await engine.submit(request(promptOf(20), { maxTokens: 1, ignoreEos: true }));
  await inFlight();
  stream.abort();
  open();
  const { events } = await read(stream);
  assertEquals(events.filter(({ type }) => type === "end").length, 1);
  stream.abort();
  const { finished, kvBlocksFree, kvBlocksTotal } = await engine.stats();
  assertEquals(finished.abort + finished.length, 1);
  assertEquals(kvBlocksFree, kvBlocksTotal);
});

Deno.test("LocalEngine frees a sequence that is aborted while swapped out", async () => {
  const engine = new LocalEngine(new ScriptedBackend({ limits: { kvBlocks: 6 } }));
  const streams = await Promise.all(
    [1, 2, 3].map((seed) =>
      engine.submit(request(promptOf(20, seed), { maxTokens: 60, ignoreEos: true }))
    ),
  );
  const runs = streams.slice(0, 2).map(read);
  while ((await engine.stats()).preempted === 0) {
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  for (const stream of streams) stream.abort();
  await Promise.all([...runs, read(streams[2]!)]);
  const stats = await engine.stats();
  assertEquals(stats.kvBlocksFree, stats.kvBlocksTotal);
  assertEquals([stats.preempted, stats.waiting, stats.running], [0, 0, 0]);
  await run(engine, request(promptOf(40)));
});

Deno.test("LocalEngine frees a waiter whose leader is aborted, and the other way round", async () => {
  for (const victim of [0, 1]) {
    const { engine, inFlight, pass, open } = steppedEngine({ maxBatchTokens: 16 });
    const streams = [
      await engine.submit(request(promptOf(100), { ignoreEos: true })),
      await engine.submit(request(promptOf(100), { ignoreEos: true })),
    ];
    await inFlight();
    await pass();
    streams[victim]!.abort();
    open();
    const ends = await Promise.all(streams.map(async (stream) => (await read(stream)).end.reason));
    assertEquals(ends, victim === 0 ? ["abort", "length"] : ["length", "abort"]);
  }
});

Deno.test("LocalEngine takes a reader that leaves its loop for an abort", async () => {
  const engine = new LocalEngine(new ScriptedBackend());
  const stream = await engine.submit(request(promptOf(20), { maxTokens: 1000, ignoreEos: true }));
  for await (const _ of stream) break;
  while ((await engine.stats()).running > 0) await new Promise((resolve) => setTimeout(resolve, 0));
  const stats = await engine.stats();
  assertEquals([stats.finished.abort, stats.kvBlocksFree], [1, stats.kvBlocksTotal]);
});

Deno.test("LocalEngine ends every stream when it is disposed of, and refuses what comes", async () => {
  const { engine, backend, inFlight, open } = steppedEngine({ kvBlocks: 4 });
  const streams = await Promise.all(
    [1, 2, 3].map((seed) => engine.submit(request(promptOf(30, seed)))),
  );
  await inFlight();
  const gone = Promise.all([engine.dispose(), engine.dispose()]);
  open();
  await gone;
  for (const stream of streams) assertEquals((await read(stream)).end.reason, "abort");
  assert(backend.disposed);
  await assertRejects(() => engine.submit(request([1])), BackendError, "disposed");
  await engine.dispose();
});
