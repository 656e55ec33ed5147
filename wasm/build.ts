/**
 * Builds the WASM artifacts in `wasm/lib`, all or those that are named. `--check` builds them aside
 * and compares: they must stem from these sources and, where this machine has the compiler that
 * built them, be equal byte for byte.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Artifact, ARTIFACTS } from "./build/artifacts.ts";
import { BuildError } from "./build/command.ts";
import { compile } from "./build/compile.ts";
import { hashFiles, hashSources, readManifest, updateManifest } from "./build/manifest.ts";
import { findRust, findWasmBindgen, type Rust } from "./build/toolchain.ts";

const WORKSPACE = fileURLToPath(new URL(".", import.meta.url));
const LIB = join(WORKSPACE, "lib");
const TARGET = join(WORKSPACE, "target");

function build(artifact: Artifact, rust: Rust, output: string): void {
  console.error(`Building ${artifact.name} with ${rust.version} …`);
  const wasmBindgen = findWasmBindgen(rust, join(TARGET, "tools"));
  compile(artifact, { rust, wasmBindgen, workspace: WORKSPACE, target: TARGET, output });
}

function buildAndRecord(artifact: Artifact, rust: Rust): void {
  build(artifact, rust, LIB);
  const entry = {
    sources: hashSources(artifact, WORKSPACE),
    rustc: rust.version,
    files: hashFiles(artifact, LIB),
  };
  updateManifest(LIB, { [artifact.name]: entry });
}

/** @throws {BuildError} The committed artifact is not what these sources give. */
function check(artifact: Artifact, compilers: readonly [Rust, ...Rust[]], output: string): void {
  const { name } = artifact;
  const refuse = (problem: string) =>
    new BuildError(
      `Cannot accept ${name} in wasm/lib: ${problem}; run deno task build:wasm and commit wasm/lib`,
    );
  const entry = readManifest(LIB)[name];
  if (entry === undefined) throw refuse("manifest.json does not name it");
  if (hashSources(artifact, WORKSPACE) !== entry.sources) throw refuse("its sources have changed");
  const committed = JSON.stringify(entry.files);
  if (JSON.stringify(hashFiles(artifact, LIB)) !== committed) {
    throw refuse("its files are not those of manifest.json");
  }
  const same = compilers.find(({ version }) => version === entry.rustc);
  build(artifact, same ?? compilers[0], output);
  if (same === undefined) {
    console.error(`Cannot compare the bytes of ${name}: it was built with ${entry.rustc}`);
  } else if (JSON.stringify(hashFiles(artifact, output)) !== committed) {
    throw refuse("building it gives other bytes");
  }
}

function checkAll(artifacts: readonly Artifact[], compilers: readonly [Rust, ...Rust[]]): void {
  const output = mkdtempSync(join(tmpdir(), "wasm-check-"));
  try {
    for (const artifact of artifacts) check(artifact, compilers, output);
  } finally {
    rmSync(output, { recursive: true });
  }
}

function main(): void {
  const { values, positionals } = parseArgs({
    options: { check: { type: "boolean", default: false }, rust: { type: "string" } },
    allowPositionals: true,
  });
  const artifacts = chooseArtifacts(positionals);
  const compilers = findRust();
  if (values.check) return checkAll(artifacts, compilers);
  const rust = compilers.find(({ name }) => name === (values.rust ?? compilers[0].name));
  if (rust === undefined) {
    const names = compilers.map(({ name }) => name).join(" or ");
    throw new BuildError(`Cannot build: --rust must be ${names}, current value is ${values.rust}`);
  }
  for (const artifact of artifacts) buildAndRecord(artifact, rust);
}

/** The artifacts of these names; all where there are none. */
function chooseArtifacts(names: readonly string[]): readonly Artifact[] {
  if (names.length === 0) return ARTIFACTS;
  return names.map((wanted) => {
    const found = ARTIFACTS.find(({ name }) => name === wanted);
    if (found !== undefined) return found;
    const known = ARTIFACTS.map(({ name }) => name).join(", ");
    throw new BuildError(`Cannot build ${wanted}: must be one of ${known}`);
  });
}

try {
  main();
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
