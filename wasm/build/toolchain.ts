/** Finds what a build needs on this machine: Rust for WASM, and wasm-bindgen. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { BuildError, runCommand, tryCommand } from "./command.ts";

/** The same version as the crate `wasm-bindgen` in the Cargo.toml files. */
export const WASM_BINDGEN = "0.2.130";

const TARGET = "wasm32-unknown-unknown";

export interface Rust {
  readonly name: "rustup" | "debian";
  readonly cargo: string;
  /** For cargo. */
  readonly env: Readonly<Record<string, string>>;
  /** What `rustc --version` prints. */
  readonly version: string;
  /** Whether the target's standard library is there, or has to be compiled each time. */
  readonly hasStd: boolean;
}

/**
 * The Rust compilers on this machine that can build for WASM, the preferred one first.
 *
 * @throws {BuildError} There is none; says what to install.
 */
export function findRust(): readonly [Rust, ...Rust[]] {
  const [first, ...others] = [rustup(), debian()].filter((rust) => rust !== undefined);
  if (first !== undefined) return [first, ...others];
  throw new BuildError(
    "Cannot build: no Rust compiler for WebAssembly was found. Install one of\n" +
      `  rustup (https://rustup.rs), then: rustup target add ${TARGET} && ` +
      "rustup component add rust-src\n" +
      "  Debian packages: apt-get install -y rustc-web cargo-web rust-web-src lld",
  );
}

function rustup(): Rust | undefined {
  const version = tryCommand(["rustup", "run", "stable", "rustc", "--version"]);
  if (version === undefined) return undefined;
  const added = tryCommand(["rustup", "target", "add", "--toolchain", "stable", TARGET]);
  // The threaded artifact compiles the standard library, whose source is a component.
  const source = tryCommand(["rustup", "component", "add", "--toolchain", "stable", "rust-src"]);
  if (added === undefined || source === undefined) return undefined;
  return {
    name: "rustup",
    cargo: "cargo",
    env: { RUSTUP_TOOLCHAIN: "stable" },
    version,
    hasStd: true,
  };
}

function debian(): Rust | undefined {
  const rustc = "/usr/bin/rustc";
  const version = existsSync("/usr/bin/cargo") ? tryCommand([rustc, "--version"]) : undefined;
  const root = version && tryCommand([rustc, "--print", "sysroot"]);
  const linker = tryCommand(["wasm-ld", "--version"]);
  if (!version || !root || linker === undefined) return undefined;
  if (!existsSync(join(root, "lib/rustlib/src/rust/library/std"))) return undefined;
  return {
    name: "debian",
    cargo: "/usr/bin/cargo",
    env: { RUSTC: rustc, CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: "wasm-ld" },
    version,
    hasStd: existsSync(join(root, "lib/rustlib", TARGET)),
  };
}

/**
 * The path of wasm-bindgen's command, which is compiled where it is missing (some minutes).
 *
 * @param folder Where to install it.
 */
export function findWasmBindgen(rust: Rust, folder: string): string {
  const cargoHome = process.env["CARGO_HOME"] ?? join(homedir(), ".cargo");
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), join(cargoHome, "bin")];
  const installed = join(folder, "bin", "wasm-bindgen");
  const candidates = [...folders.map((path) => join(path, "wasm-bindgen")), installed];
  const found = candidates.find((path) =>
    existsSync(path) && tryCommand([path, "--version"]) === `wasm-bindgen ${WASM_BINDGEN}`
  );
  if (found !== undefined) return found;
  console.error(`Installing wasm-bindgen ${WASM_BINDGEN} …`);
  // Without --locked: the crate's lock file names a withdrawn dependency.
  runCommand(
    [rust.cargo, "install", "wasm-bindgen-cli", "--version", WASM_BINDGEN, "--root", folder],
    { env: rust.env },
  );
  return installed;
}
