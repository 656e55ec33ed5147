/** Lets messages, sockets and timers in between two steps, without the clamp of `setTimeout(0)`. */

type SetImmediate = (callback: () => void) => unknown;

const { setImmediate, navigator } = globalThis as {
  readonly setImmediate?: SetImmediate;
  readonly navigator?: { readonly userAgent?: string };
};

/**
 * Turns of the event loop until it is sure to look at sockets and ports. While immediates keep Deno
 * busy, its scheduler (tokio) polls them in one turn out of 61 only: without this, a message waits
 * for dozens of steps. Turns are cheap, 64 take 0.2 ms; `setTimeout(0)` would sleep for 1 ms.
 */
const POLLING_TURNS = navigator?.userAgent?.startsWith("Deno/") ? 64 : 1;

/** Milliseconds that short steps may go on without such a look, to spare them its cost. */
const POLLING_INTERVAL = 10;

let lastPoll = -Infinity;

/** Resolves in a later turn of the event loop. */
export async function yieldToEventLoop(): Promise<void> {
  const now = performance.now();
  const turns = now - lastPoll < POLLING_INTERVAL ? 1 : POLLING_TURNS;
  for (let turn = 0; turn < turns; turn++) await nextTurn();
  if (turns === POLLING_TURNS) lastPoll = now;
}

const nextTurn: () => Promise<void> = setImmediate === undefined
  ? () =>
    new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(undefined);
    })
  : () => new Promise((resolve) => setImmediate(resolve));
