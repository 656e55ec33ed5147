/** What the committed artifacts were built from, so that anyone can tell whether they still fit. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Artifact, ARTIFACTS } from "./artifacts.ts";
import { filesOf } from "./compile.ts";
import { WASM_BINDGEN } from "./toolchain.ts";

export interface ManifestEntry {
  /** SHA-256 over the Rust sources, the settings of cargo and those of the build. */
  readonly sources: string;
  /** What `rustc --version` printed. */
  readonly rustc: string;
  /** SHA-256 of each file. */
  readonly files: Readonly<Record<string, string>>;
}

/** By the artifact's name. */
export type Manifest = Readonly<Record<string, ManifestEntry>>;

const sha256 = (content: string | Uint8Array): string =>
  createHash("sha256").update(content).digest("hex");

/** @param workspace The cargo workspace, `wasm/`. */
export function hashSources(artifact: Artifact, workspace: string): string {
  const { crate } = artifact;
  const sources = readdirSync(join(workspace, crate, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".rs"))
    .map((path) => `${crate}/src/${path.replaceAll("\\", "/")}`)
    .sort();
  const lines = ["Cargo.toml", "Cargo.lock", `${crate}/Cargo.toml`, ...sources]
    .map((path) => `${path} ${sha256(readFileSync(join(workspace, path)))}`);
  return sha256([JSON.stringify(artifact), WASM_BINDGEN, ...lines].join("\n"));
}

/** @param folder Where the artifact's files lie. */
export function hashFiles(artifact: Artifact, folder: string): Record<string, string> {
  const hashes = filesOf(artifact).map((name) => {
    const path = join(folder, name);
    return [name, existsSync(path) ? sha256(readFileSync(path)) : "missing"];
  });
  return Object.fromEntries(hashes);
}

const pathIn = (folder: string): string => join(folder, "manifest.json");

export function readManifest(folder: string): Manifest {
  return existsSync(pathIn(folder)) ? JSON.parse(readFileSync(pathIn(folder), "utf8")) : {};
}

/** Replaces the entries of some artifacts. */
export function updateManifest(folder: string, entries: Manifest): void {
  const merged = { ...readManifest(folder), ...entries };
  const sorted = ARTIFACTS.flatMap(({ name }) => {
    const entry = merged[name];
    return entry === undefined ? [] : [[name, entry]];
  });
  writeFileSync(
    pathIn(folder),
    `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`,
  );
}
