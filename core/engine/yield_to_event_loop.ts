/** Lets messages, sockets and timers in between two steps, without the clamp of `setTimeout(0)`. */

type SetImmediate = (callback: () => void) => unknown;

const { setImmediate } = globalThis as { readonly setImmediate?: SetImmediate };

/** Resolves in a later turn of the event loop. */
export const yieldToEventLoop: () => Promise<void> = setImmediate === undefined
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
