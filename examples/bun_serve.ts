// The same on Bun.
//   bun run examples/bun_serve.ts
import { entropic, loadModel } from "../mod.ts";

const model = await loadModel({ worker: true });

// Bun serves a default export; a long prefill may be silent for longer than Bun's default 10 s.
export default { port: 8000, idleTimeout: 120, fetch: entropic(model).fetch };
