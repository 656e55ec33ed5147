/** Starts `deno task serve`'s script on the real model as a process of its own. */
import { startCli } from "./cli_process.ts";
import { REAL_MODEL } from "./real_model.ts";

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
  const settings = ["--model", REAL_MODEL ?? "", "--port", "0", "--quiet"];
  const child = startCli("serve", [...settings, ...args]);
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
