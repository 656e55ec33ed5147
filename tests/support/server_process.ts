/** Starts `deno task serve`'s script on the real model as a process of its own. */
import { fileURLToPath } from "node:url";
import { REAL_MODEL } from "./real_model.ts";

const SCRIPT = fileURLToPath(new URL("../../core/host/cli/serve.ts", import.meta.url));

export interface ServerProcess extends AsyncDisposable {
  readonly url: string;
  readonly exitCode: Promise<number>;
  /** As Ctrl-C. */
  interrupt(): void;
}

/**
 * Resolves when the server is ready.
 *
 * @throws {Error} The process ended before; with what it wrote to standard error.
 */
export async function startServer(args: readonly string[] = []): Promise<ServerProcess> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", SCRIPT, "--model", REAL_MODEL ?? "", "--port", "0", "--quiet", ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const complaints = new Response(child.stderr).text();
  let output = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    output += text;
    const url = /^Serving on (\S+)$/m.exec(output)?.[1];
    if (url === undefined) continue;
    const exitCode = child.status.then(({ code }) => code);
    return {
      url,
      exitCode,
      interrupt: () => child.kill("SIGINT"),
      async [Symbol.asyncDispose]() {
        child.kill("SIGINT");
        await exitCode;
        await complaints;
      },
    };
  }
  throw new Error(`The server ended before it was ready: ${await complaints}`);
}
