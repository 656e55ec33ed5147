/**
 * What runs in the browser page: one wllama, driven from outside by `page.evaluate`. Plain
 * JavaScript in a string, because it is served as it stands.
 */
export const WLLAMA_PAGE = `<!doctype html><meta charset="utf-8"><script type="module">
import { Wllama } from "/wllama/esm/index.js";
const newest = location.hash === "#newest";
const assets = newest
  ? { default: "/wllama/esm/wasm/wllama.wasm" }
  : {
    "single-thread/wllama.wasm": "/wllama/esm/single-thread/wllama.wasm",
    "multi-thread/wllama.wasm": "/wllama/esm/multi-thread/wllama.wasm",
  };
let wllama;

// Seconds that loading took; the file is in the page's memory before.
globalThis.load = async (threads, context) => {
  await wllama?.exit();
  const blob = await (await fetch("/model.gguf")).blob();
  wllama = new Wllama(assets, { suppressNativeLog: true });
  const start = performance.now();
  await wllama.loadModel([blob], {
    n_threads: threads, n_ctx: context, n_gpu_layers: 0, useCache: false,
  });
  return (performance.now() - start) / 1000;
};

// Times of a greedy completion: seconds to the first token, then to the last, and tokens between.
globalThis.complete = async (prompt, tokens) => {
  const times = [];
  const onToken = () => { times.push(performance.now()); };
  const start = performance.now();
  if (newest) {
    await wllama.createCompletion({
      prompt, max_tokens: tokens, temperature: 0, stream: true, ignore_eos: true,
      cache_prompt: false, onData: onToken,
    });
  } else {
    await wllama.createCompletion(prompt, {
      nPredict: tokens, sampling: { temp: 0 }, useCache: false, onNewToken: onToken,
    });
  }
  return {
    first: (times[0] - start) / 1000,
    rest: (times.at(-1) - times[0]) / 1000,
    tokens: times.length - 1,
  };
};
globalThis.ready = true;
</script>`;
