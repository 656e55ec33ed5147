/** The command as a process of its own. `tests/e2e` has what needs a real model. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { assertCliRefuses, startCli } from "../../../tests/support/cli_process.ts";
import { loopbackServer } from "../../../tests/support/loopback_server.ts";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";

Deno.test("serve stops at a signal while it fetches its model", async () => {
  const asked = Promise.withResolvers<void>();
  // A download that never ends.
  await using files = await loopbackServer((_, response) => {
    response.writeHead(200, { "content-length": 1_000_000 }).write("GGUF", () => asked.resolve());
  });
  await using directory = await temporaryDirectory();
  const model = ["--model-dir", directory.path, "--model", `${files.origin}/model.gguf`];
  const child = startCli("serve", ["--port", "0", ...model]);
  await asked.promise;
  child.kill("SIGINT");
  const { code, stderr } = await child.output();
  assertEquals(code, 1);
  assertStringIncludes(new TextDecoder().decode(stderr), "interrupted");
});

Deno.test("serve refuses bad attention before it loads anything", async () => {
  await assertCliRefuses("serve", ["--port", "0"], [
    [["--attention", "quest"], "off, mass, paper"],
    [["--attention-mass", "0.4"], "from 0.5 to 1"],
    [["--least-mass", "2"], "from 0.5 to 1"],
    [["--divergence", "0"], "a finite number from"],
    [["--divergence", "Infinity"], "a finite number from"],
  ]);
});
