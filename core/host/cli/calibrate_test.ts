/** The command as a process of its own. `tests/gpu` and `tests/e2e` have what needs a model. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("./calibrate.ts", import.meta.url));

Deno.test("calibrate refuses bad options before it loads anything", async () => {
  const cases: readonly [flags: string[], says: string][] = [
    [["--backend", "cuda"], "auto, wasm, webgpu"],
    [["--gpu-arithmetic", "int4"], "it takes f32, int8"],
    [["--threads", "0"], "from 1 to 256"],
    [["--bound", "0"], "a finite number from"],
    [["--lengths", "512,256"], "multiples of 16 from 256 on, ascending"],
  ];
  for (const [flags, says] of cases) {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", SCRIPT, "--model", "no-such-model.gguf", ...flags],
      stdin: "null",
    }).output();
    assertEquals(code, 2);
    assertStringIncludes(new TextDecoder().decode(stderr), says);
  }
});
