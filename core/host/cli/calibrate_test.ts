/** The command as a process of its own. `tests/gpu` and `tests/e2e` have what needs a model. */
import { assertCliRefuses } from "../../../tests/support/cli_process.ts";

Deno.test("calibrate refuses bad options before it loads anything", async () => {
  await assertCliRefuses("calibrate", ["--model", "no-such-model.gguf"], [
    [["--backend", "cuda"], "auto, wasm, webgpu"],
    [["--arithmetic", "int4"], "it takes f32, int8"],
    [["--threads", "0"], "from 1 to 256"],
    [["--bound", "0"], "a finite number from"],
    [["--lengths", "512,256"], "multiples of 16 from 256 on, ascending"],
  ]);
});
