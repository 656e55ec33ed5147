/** Decode under Bun beside the same script under Deno: one core, two WASM compilers. */
import { execFile } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { MissingPeerError } from "../contender.ts";
import type { Row, Side } from "../row.ts";

const TOKENS = "64";

export const bun: Row = {
  name: "bun",
  about: "decode under Bun, beside Deno",
  unit: "tokens/s",
  better: "more",
  async open({ model }) {
    const side = (name: string, command: string, args: readonly string[]): Side => (
      { name, warmsUp: true, measure: () => decodeUnder(command, args, model) }
    );
    await findBun();
    return {
      own: side("Bun", "bun", ["run"]),
      peers: [side("Deno", process.execPath, ["run", "-A", "--quiet"])],
    };
  },
};

const run = promisify(execFile);
const SCRIPT = fileURLToPath(new URL("decode_process.ts", import.meta.url));

async function findBun(): Promise<void> {
  try {
    await run("bun", ["--version"]);
  } catch {
    throw new MissingPeerError("Cannot find Bun: install it from https://bun.sh");
  }
}

async function decodeUnder(
  command: string,
  args: readonly string[],
  model: string,
): Promise<number> {
  const { stdout } = await run(command, [...args, SCRIPT, model, TOKENS]);
  return Number(stdout);
}
