import { assert, assertEquals } from "@std/assert";
import { type CloseReason, eventStream, type EventStreamOptions } from "./sse.ts";

function options(change: Partial<EventStreamOptions> = {}) {
  const log: string[] = [];
  return {
    log,
    keepAliveSeconds: 0,
    signal: new AbortController().signal,
    abort: () => void log.push("abort"),
    onClose: (reason: CloseReason) => void log.push(reason),
    ...change,
  };
}

async function* from(values: readonly unknown[]) {
  yield* values;
}

async function* waiting(gate: Promise<void>, ...values: unknown[]) {
  await gate;
  yield* values;
}

Deno.test("eventStream sends each value as one line of JSON, then [DONE]", async () => {
  const given = options();
  const response = eventStream(from([{ text: "a\n\ndata: forged\r\nevent: x" }, 2]), given);
  assertEquals(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assertEquals(
    await response.text(),
    'data: {"text":"a\\n\\ndata: forged\\r\\nevent: x"}\n\ndata: 2\n\ndata: [DONE]\n\n',
  );
  assertEquals(given.log, ["done"]);
});

Deno.test("eventStream turns an error into an event and still ends with [DONE]", async () => {
  const given = options();
  async function* failing() {
    yield 1;
    throw new Error("secret");
  }
  const text = await eventStream(failing(), given).text();
  const [first, error, done] = text.split("\n\n");
  assertEquals([first, done], ["data: 1", "data: [DONE]"]);
  assertEquals(JSON.parse(error!.slice("data: ".length)).error.type, "server_error");
  assert(!text.includes("secret"));
  assertEquals(given.log, ["error"]);
});

Deno.test("eventStream sends comments while nothing comes", async () => {
  const gate = Promise.withResolvers<void>();
  const response = eventStream(waiting(gate.promise, 1), options({ keepAliveSeconds: 0.01 }));
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  assertEquals((await reader.read()).value, ": keep-alive\n\n");
  assertEquals((await reader.read()).value, ": keep-alive\n\n");
  gate.resolve();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) rest += read.value;
  assert(rest.endsWith("data: 1\n\ndata: [DONE]\n\n"), rest);
});

Deno.test("eventStream pulls no value before the last one was taken", async () => {
  let produced = 0;
  async function* counting() {
    for (; produced < 100; produced++) yield produced;
  }
  const response = eventStream(counting(), options());
  const reader = response.body!.getReader();
  await reader.read();
  await new Promise((resolve) => setTimeout(resolve));
  assert(produced <= 2, `produced ${produced}`);
  await reader.cancel();
});

Deno.test("eventStream aborts when its reader cancels in the middle of a wait", async () => {
  const gate = Promise.withResolvers<void>();
  const given = options({ keepAliveSeconds: 10 });
  const response = eventStream(waiting(gate.promise), given);
  await response.body!.cancel();
  assertEquals(given.log, ["disconnect", "abort"]);
  gate.resolve();
});

Deno.test("eventStream aborts when the request's signal fires, and only then", async () => {
  const gate = Promise.withResolvers<void>();
  const client = new AbortController();
  const given = options({ signal: client.signal });
  const response = eventStream(waiting(gate.promise), given);
  client.abort();
  assertEquals(given.log, ["disconnect", "abort"]);
  assertEquals(await response.text(), "");
  gate.resolve();
});

Deno.test("eventStream ignores a signal that fires after the end", async () => {
  const client = new AbortController();
  const given = options({ signal: client.signal });
  await eventStream(from([1]), given).text();
  client.abort();
  assertEquals(given.log, ["done"]);
});

Deno.test("eventStream of a client that left before it began aborts at once", () => {
  const given = options({ signal: AbortSignal.abort() });
  eventStream(from([1]), given);
  assertEquals(given.log, ["disconnect", "abort"]);
});
