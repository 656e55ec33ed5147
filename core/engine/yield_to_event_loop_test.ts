import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { assert } from "@std/assert";
import { yieldToEventLoop } from "./yield_to_event_loop.ts";

/** As a synchronous forward does. */
function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

Deno.test("yieldToEventLoop lets sockets in after every long step", async () => {
  const server = createServer((_, response) => response.end("here"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  let answered = false, steps = 0;
  const request = fetch(`http://127.0.0.1:${port}`).then(async (response) => {
    await response.text();
    answered = true;
  });
  while (!answered && steps < 200) {
    block(11);
    await yieldToEventLoop();
    steps++;
  }
  await request;
  await new Promise((resolve) => server.close(resolve));
  // Connecting, sending, answering and reading take a look each; without looks it is over 150.
  assert(steps < 50, `${steps} steps`);
});
