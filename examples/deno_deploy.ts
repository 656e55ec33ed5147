// An edge function: one thread, no Worker, a small context. Edge hosts have no disk to speak of, so
// the model comes over HTTP into memory, and straight on into the WASM core.
//   MODEL_URL=https://… deno run -A examples/deno_deploy.ts
import { BlobSource, entropic, loadModel } from "../mod.ts";

const url = Deno.env.get("MODEL_URL");
if (url === undefined) throw new Error("Set MODEL_URL to the address of a GGUF file");

// A function is loaded when the first request needs it; until then /health says so.
const app = entropic(async () => {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`Cannot fetch ${url}: status is ${response.status}`);
  return await loadModel({
    id: "edge",
    model: [new BlobSource(url, await response.blob())],
    context: 2048,
    kvBlocks: 128,
    prefillChunk: 16,
  });
});

Deno.serve(app.fetch);
