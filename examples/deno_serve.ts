// An OpenAI-compatible server on Deno, in ten lines.
//   deno run -A examples/deno_serve.ts
import { entropic, loadModel } from "../mod.ts";

const model = await loadModel({ worker: true });
Deno.serve({ port: 8000 }, entropic(model).fetch);
