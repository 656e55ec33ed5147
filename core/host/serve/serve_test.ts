import { assertEquals, assertRejects } from "@std/assert";
import { connect } from "node:net";
import { serve } from "./serve.ts";

const hello = { fetch: () => new Response("hello") };

Deno.test("serve answers on a port that the system chose, until stopped", async () => {
  const server = await serve(hello, { port: 0 });
  assertEquals(await (await fetch(server.url)).text(), "hello");
  await server.stop();
  await server.stopped;
  await assertRejects(() => fetch(server.url));
});

Deno.test("serve says that a port is in use", async () => {
  const server = await serve(hello, { port: 0 });
  await assertRejects(
    () => serve(hello, { port: server.port }),
    Error,
    `Cannot listen on 127.0.0.1:${server.port}: the port is in use`,
  );
  await server.stop();
});

Deno.test("serve stops when its signal fires", async () => {
  const controller = new AbortController();
  const server = await serve(hello, { port: 0, signal: controller.signal });
  controller.abort();
  await server.stopped;
  await assertRejects(() => fetch(server.url));
});

Deno.test("serve lets a running stream finish", async () => {
  const gate = Promise.withResolvers<void>();
  const server = await serve({ fetch: () => new Response(slowBody(gate.promise)) }, { port: 0 });
  const response = await fetch(server.url);
  const stopping = server.stop();
  gate.resolve();
  assertEquals(await response.text(), "first last");
  await stopping;
});

Deno.test("serve ends what still runs at the deadline, then cuts it", async () => {
  const never = Promise.withResolvers<void>();
  const server = await serve({ fetch: () => new Response(slowBody(never.promise)) }, {
    port: 0,
    shutdownSeconds: 0.05,
    onDeadline: () => never.resolve(),
  });
  const response = await fetch(server.url);
  const [text] = await Promise.all([response.text(), server.stop()]);
  assertEquals(text, "first last");
});

Deno.test("serve cuts a stream that does not end", async () => {
  const never = Promise.withResolvers<void>();
  const server = await serve({ fetch: () => new Response(slowBody(never.promise)) }, {
    port: 0,
    shutdownSeconds: 0.05,
  });
  const response = await fetch(server.url);
  await Promise.all([server.stop(), assertRejects(() => response.text())]);
  never.resolve();
});

Deno.test("serve tells of a client that leaves before its answer, whatever it sent", async () => {
  for (const size of [10, 5_000, 200_000]) {
    const left = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const missed = setTimeout(() => left.reject(new Error("nobody told of it")), 10_000);
    const server = await serve({
      async fetch(request) {
        request.signal.addEventListener("abort", () => left.resolve());
        assertEquals((await request.text()).length, size);
        asked.resolve();
        await left.promise;
        return new Response("too late");
      },
    }, { port: 0 });
    const client = connect(server.port, "127.0.0.1");
    client.write(`POST / HTTP/1.1\r\nHost: test\r\nContent-Length: ${size}\r\n\r\n`);
    client.write("x".repeat(size));
    await asked.promise;
    client.destroy();
    await left.promise;
    clearTimeout(missed);
    await server.stop();
  }
});

/** Two chunks, the second when the gate opens. */
function slowBody(gate: Promise<void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(encoder.encode("first "));
      await gate;
      try {
        controller.enqueue(encoder.encode("last"));
        controller.close();
      } catch {
        // The connection was cut.
      }
    },
  });
}
