import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { promptOf, read, request, run } from "../../../tests/support/engine_runs.ts";
import { ScriptedBackend, type ScriptedOptions } from "../../../tests/support/scripted_backend.ts";
import { BackendError, ModelError, OverloadedError, RequestError } from "../../errors.ts";
import { hostEngine } from "./engine_host.ts";
import { channelOf, type EngineLink, linkToWorker } from "./engine_protocol.ts";
import type { LocalEngineOptions } from "../engine_options.ts";
import { LocalEngine } from "../local_engine.ts";
import { connectEngine } from "./remote_engine.ts";

/** A link to a host at the other end of a `MessageChannel`. */
function linkTo(open: Parameters<typeof hostEngine>[1]): EngineLink {
  const { port1, port2 } = new MessageChannel();
  void hostEngine(channelOf(port2), open);
  return {
    ...channelOf(port1),
    onFailure: () => {},
    close: () => {
      port1.close();
      port2.close();
    },
  };
}

/** A client and the engine that it speaks to. */
async function pair(backend: ScriptedOptions = {}, options: LocalEngineOptions = {}) {
  const local = new LocalEngine(new ScriptedBackend(backend), {
    ...{ maxWaiting: 4, eventBuffer: 4 },
    ...options,
  });
  const link = linkTo(() => Promise.resolve(local));
  return { local, remote: await connectEngine(() => link, { eventBuffer: 4 }) };
}

/** The token that kills `engine_worker.ts`. */
const DEADLY = 62;

function worker(): EngineLink {
  const url = new URL("../../../tests/support/engine_worker.ts", import.meta.url);
  return linkToWorker(new Worker(url, { type: "module" }));
}

const prompts = [promptOf(5, 1, 60), promptOf(50, 2, 60), promptOf(20, 3, 60)];

Deno.test("RemoteEngine answers as the engine behind it", async () => {
  const { local, remote } = await pair();
  assertEquals(remote.info, structuredClone(local.info));
  const asked = prompts.map((prompt, i) =>
    request(prompt, { temperature: 0.9, seed: (1n << 64n) - BigInt(i) - 1n, topLogprobs: 2 })
  );
  const there = await Promise.all(asked.map((one) => run(remote, one)));
  const here = await Promise.all(
    asked.map((one) => run(new LocalEngine(new ScriptedBackend()), one)),
  );
  for (const [i, { events }] of there.entries()) {
    assertEquals(events.slice(0, -1), here[i]!.events.slice(0, -1));
  }
  assertEquals(await remote.stats(), await local.stats());
  await remote.dispose();
});

Deno.test("RemoteEngine tells by its figures of a backend that took another's place", async () => {
  const onForward = () => {
    throw new BackendError("Cannot go on: the device is lost", { fatal: true });
  };
  const { local, remote } = await pair({ onForward }, {
    recover: () => Promise.resolve(new ScriptedBackend({ limits: { kvBlocks: 4 } })),
  });
  await assertRejects(() => run(remote, request([1])), BackendError, "the device is lost");
  // No request has told it.
  while ((await remote.stats()).rebuilds === 0);
  assertEquals(remote.info.limits.kvBlocks, 4);
  assertEquals(remote.info, structuredClone(local.info));
  await remote.dispose();
});

Deno.test("RemoteEngine passes refusals and failures on by kind", async () => {
  const { remote } = await pair({ poison: 0, endTokens: [63] });
  const refused = await assertRejects(
    () => remote.submit(request([1], { maxTokens: 1e6 })),
    RequestError,
  );
  assertEquals([refused.code, refused.param], ["context_length_exceeded", "max_tokens"]);
  const failed = await assertRejects(() => run(remote, request([0])), BackendError);
  assertEquals(failed.fatal, false);
  const many = Array.from({ length: 9 }, () => run(remote, request([1], { maxTokens: 1 })));
  const reasons = (await Promise.allSettled(many))
    .flatMap((one) => one.status === "rejected" ? [one.reason] : []);
  assert(reasons.length > 0);
  for (const reason of reasons) assertInstanceOf(reason, OverloadedError);
  await remote.dispose();
});

Deno.test("RemoteEngine tells that the engine behind it is down", async () => {
  const onForward = () => {
    throw new BackendError("Cannot go on: the device is lost", { fatal: true });
  };
  const { remote } = await pair({ onForward });
  await assertRejects(() => run(remote, request([1])), BackendError, "lost");
  await assertRejects(() => remote.stats(), BackendError, "lost");
  await remote.dispose();
});

Deno.test("RemoteEngine pauses a sequence that nobody reads", async () => {
  const { local, remote } = await pair();
  const slow = await remote.submit(request([1], { maxTokens: 100, ignoreEos: true }));
  await run(remote, request([2], { maxTokens: 90, ignoreEos: true }));
  await new Promise((resolve) => setTimeout(resolve, 5));
  // At most 4 unread on this side, 1 in the host's hands, 4 in the engine's own buffer.
  assert((await local.stats()).generatedTokens <= 90 + 9);
  assertEquals((await read(slow)).tokens.length, 100);
  await remote.dispose();
});

Deno.test("RemoteEngine aborts by call, by leaving the loop, and while it is paused", async () => {
  const { local, remote } = await pair();
  const asked = request([1], { maxTokens: 1000, ignoreEos: true });
  const called = await remote.submit(asked);
  called.abort();
  called.abort();
  assertEquals((await read(called)).end.reason, "abort");
  for await (const _ of await remote.submit(asked)) break;
  const paused = await remote.submit(asked);
  await new Promise((resolve) => setTimeout(resolve, 5));
  paused.abort();
  assertEquals((await read(paused)).end.reason, "abort");
  const { finished, kvBlocksFree, kvBlocksTotal } = await local.stats();
  assertEquals([finished.abort, kvBlocksFree], [3, kvBlocksTotal]);
  await remote.dispose();
});

Deno.test("RemoteEngine disposes of the engine behind it and ends its streams", async () => {
  const { local, remote } = await pair();
  const stream = await remote.submit(request([1], { maxTokens: 1000, ignoreEos: true }));
  await Promise.all([remote.dispose(), remote.dispose()]);
  assertEquals((await read(stream)).end.reason, "abort");
  await assertRejects(() => local.submit(request([1])), BackendError, "disposed");
  await assertRejects(() => remote.submit(request([1])), BackendError, "disposed");
});

Deno.test("connectEngine says why the host has no engine", async () => {
  const { port1, port2 } = new MessageChannel();
  void hostEngine(channelOf(port2), () => Promise.reject(new ModelError("blk.0", "no tensor")));
  const close = () => port1.close();
  const error = await assertRejects(
    () => connectEngine(() => ({ ...channelOf(port1), onFailure: () => {}, close })),
    ModelError,
    "no tensor",
  );
  assertEquals(error.subject, "blk.0");
});

Deno.test("RemoteEngine over a Worker fails its streams with it, then starts another", async () => {
  const remote = await connectEngine(worker);
  const first = await run(remote, request(prompts[0]!, { ignoreEos: true }));
  const bystander = await remote.submit(request(prompts[1]!, { maxTokens: 900, ignoreEos: true }));
  const killed = run(remote, request([DEADLY]));
  const error = await assertRejects(() => killed, BackendError, "the worker is gone");
  assertEquals(error.fatal, true);
  await assertRejects(() => read(bystander), BackendError);
  assertEquals((await run(remote, request(prompts[0]!, { ignoreEos: true }))).tokens, first.tokens);
  await remote.dispose();
});

Deno.test("RemoteEngine without restart rejects after its Worker has died", async () => {
  const remote = await connectEngine(worker, { restart: false });
  await assertRejects(() => run(remote, request([DEADLY])), BackendError);
  await assertRejects(() => remote.submit(request([1])), BackendError, "host died");
  await assertRejects(() => remote.stats(), BackendError);
  await remote.dispose();
});

Deno.test("RemoteEngine passes on what the host has to say to people, before it is ready and after", async () => {
  let say = (_: string) => {};
  const link = linkTo((log) => {
    log("early");
    say = log;
    return Promise.resolve(new LocalEngine(new ScriptedBackend()));
  });
  const lines: string[] = [];
  const remote = await connectEngine(() => link, { log: (line) => lines.push(line) });
  say("late");
  await remote.stats();
  assertEquals(lines, ["early", "late"]);
  await remote.dispose();
});
