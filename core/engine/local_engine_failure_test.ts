import { assert, assertEquals, assertRejects } from "@std/assert";
import { promptOf, request, run } from "../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../tests/support/scripted_backend.ts";
import { BackendError, RequestError } from "../errors.ts";
import { LocalEngine } from "./local_engine.ts";

const lost = () => new BackendError("Cannot go on: the device is lost", { fatal: true });

/** Settles runs into their reasons for ending. */
async function outcomes(runs: readonly ReturnType<typeof run>[]): Promise<string[]> {
  const settled = await Promise.allSettled(runs);
  return settled.map((one) =>
    one.status === "fulfilled" ? one.value.end.reason : (one.reason as Error).name
  );
}

Deno.test("LocalEngine fails a sequence alone whose logits are unusable", async () => {
  for (const value of [NaN, Infinity, -Infinity]) {
    const shape: ScriptedOptions["shape"] = (logits, history) => {
      if (history.includes(63)) value === -Infinity ? logits.fill(value) : logits[5] = value;
    };
    // Chunks of 16, so that the first blocks are shared before the trouble shows.
    const engine = new LocalEngine(new ScriptedBackend({ shape, limits: { maxBatchTokens: 16 } }));
    const poisoned = [...promptOf(33, 1, 63), 63];
    const got = await outcomes([
      run(engine, request(poisoned)),
      run(
        engine,
        request(promptOf(40, 2, 63), {
          ignoreEos: true,
          maxTokens: 3,
          stopTokens: [63],
        }),
      ),
    ]);
    assertEquals(got[0], "BackendError");
    assert(got[1] === "length" || got[1] === "stop");
    const stats = await engine.stats();
    assertEquals(stats.kvBlocksFree, stats.kvBlocksTotal);
    const again = await run(engine, request(poisoned.slice(0, 33), { maxTokens: 0 }));
    assertEquals(again.end.usage.cachedTokens, 0, "its blocks are not in the prefix cache");
  }
});

Deno.test("LocalEngine ends the batch, and no more, at a failure that the backend survives", async () => {
  const engine = new LocalEngine(
    new ScriptedBackend({
      onForward: (call) => {
        if (call === 2) throw new BackendError("Cannot compute: try later", { fatal: false });
      },
    }),
    { maxRunning: 2 },
  );
  const asked = [1, 2, 3].map((seed) =>
    run(engine, request(promptOf(20, seed), { ignoreEos: true }))
  );
  assertEquals(await outcomes(asked), ["BackendError", "BackendError", "length"]);
  const stats = await engine.stats();
  assertEquals(stats.kvBlocksFree, stats.kvBlocksTotal);
});

Deno.test("LocalEngine rebuilds a lost backend and serves what had not begun", async () => {
  const first = new ScriptedBackend({
    onForward: (call) => {
      if (call === 3) throw lost();
    },
  });
  let rebuilt = 0;
  const lines: string[] = [];
  const engine = new LocalEngine(first, {
    maxRunning: 2,
    log: (line) => lines.push(line),
    recover: () => {
      rebuilt++;
      return Promise.resolve(new ScriptedBackend({ limits: { kvBlocks: 4 } }));
    },
  });
  const got = await outcomes([
    run(engine, request(promptOf(20, 1), { ignoreEos: true })),
    run(engine, request(promptOf(20, 2), { ignoreEos: true })),
    run(engine, request(promptOf(20, 3), { ignoreEos: true })),
    run(engine, request(promptOf(100, 4), { ignoreEos: true })),
  ]);
  assertEquals(got, ["BackendError", "BackendError", "length", "RequestError"]);
  assertEquals(rebuilt, 1);
  assert(first.disposed);
  const next = await run(engine, request(promptOf(20), { ignoreEos: true }));
  assertEquals(next.tokens.length, 16);
  const { kvBlocksTotal, rebuilds } = await engine.stats();
  assertEquals([kvBlocksTotal, rebuilds], [4, 1]);
  assertEquals(lines, ["Cannot go on: the device is lost; going on with scripted (test)"]);
});

Deno.test("LocalEngine stays down when nothing rebuilds its backend", async () => {
  const onForward = () => {
    throw lost();
  };
  for (const recover of [undefined, () => Promise.reject(new Error("no device"))]) {
    const engine = new LocalEngine(
      new ScriptedBackend({ onForward }),
      recover === undefined ? { maxRunning: 1 } : { maxRunning: 1, recover },
    );
    const got = await outcomes([1, 2].map((seed) => run(engine, request(promptOf(9, seed)))));
    assertEquals(got, ["BackendError", "BackendError"]);
    await assertRejects(() => engine.submit(request([1])), BackendError, "lost");
    await assertRejects(() => engine.stats(), BackendError, "lost");
    await engine.dispose();
  }
});

Deno.test("LocalEngine computes again what it could not save to host memory", async () => {
  class Unreadable extends ScriptedBackend {
    override readBlocks(): Promise<Uint8Array> {
      return Promise.reject(new BackendError("Cannot read", { fatal: false }));
    }
  }
  const limits = { kvBlocks: 6 };
  const asked = [1, 2, 3].map((seed) =>
    request(promptOf(20, seed), { maxTokens: 60, ignoreEos: true })
  );
  const engine = new LocalEngine(new Unreadable({ limits }));
  const got = await Promise.all(asked.map((one) => run(engine, one)));
  assert((await engine.stats()).preemptions > 0);
  for (const [i, one] of asked.entries()) {
    const alone = await run(new LocalEngine(new ScriptedBackend({ limits })), one);
    assertEquals(got[i]!.tokens, alone.tokens);
  }
});

Deno.test("LocalEngine refuses nothing after a request that failed", async () => {
  const engine = new LocalEngine(new ScriptedBackend({ poison: 7 }));
  await assertRejects(() => run(engine, request([7])), BackendError);
  await assertRejects(() => run(engine, request([])), RequestError);
  assertEquals((await run(engine, request([8], { ignoreEos: true }))).tokens.length, 16);
});
