/** Compiles one artifact: cargo, wasm-bindgen, and a look at the result. */
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Artifact } from "./artifacts.ts";
import { BuildError, runCommand } from "./command.ts";
import { instructionsOf } from "./instructions.ts";
import type { Rust } from "./toolchain.ts";

export interface CompileOptions {
  readonly rust: Rust;
  /** wasm-bindgen's command. */
  readonly wasmBindgen: string;
  /** The cargo workspace. */
  readonly workspace: string;
  /** For intermediate files. */
  readonly target: string;
  /** Where NAME.js, NAME.d.ts and NAME_bg.wasm go. */
  readonly output: string;
}

/** The names of an artifact's files. */
export function filesOf({ name }: Artifact): readonly [js: string, types: string, wasm: string] {
  return [`${name}.js`, `${name}.d.ts`, `${name}_bg.wasm`];
}

/** @throws {BuildError} A tool failed, or the artifact has other instructions than it should. */
export function compile(artifact: Artifact, options: CompileOptions): void {
  const target = join(options.target, artifact.name);
  const bound = join(target, "bound");
  runCommand([
    options.wasmBindgen,
    cargoBuild(artifact, target, options),
    ...["--target", "web", "--out-name", artifact.name, "--out-dir", bound],
    ...["--remove-name-section", "--remove-producers-section"],
  ]);
  const files = filesOf(artifact);
  const found = instructionsOf(readFileSync(join(bound, files[2])));
  if (found.join() !== artifact.instructions.join()) {
    throw new BuildError(
      `Cannot use ${artifact.name}: its instructions must be ` +
        `${list(artifact.instructions)}, current value is ${list(found)}`,
    );
  }
  mkdirSync(options.output, { recursive: true });
  for (const file of files) copyFileSync(join(bound, file), join(options.output, file));
}

const list = (kinds: readonly string[]): string => kinds.join(", ") || "none of the three kinds";

/** @returns The path of the module as the compiler leaves it. */
function cargoBuild(artifact: Artifact, target: string, options: CompileOptions): string {
  const { rust } = options;
  const triple = "wasm32-unknown-unknown";
  const buildStd = artifact.buildStd || !rust.hasStd;
  runCommand(
    [
      rust.cargo,
      ...["build", "--release", "--locked", "--target", triple, "--target-dir", target],
      // Without paths of this machine the result is the same on every machine.
      ...["-Ztrim-paths", "--config", 'profile.release.trim-paths="all"'],
      ...(buildStd ? ["-Zbuild-std=std,panic_abort"] : []),
    ],
    {
      cwd: join(options.workspace, artifact.crate),
      env: {
        ...rust.env,
        // Allows the unstable flags (-Z) on a stable compiler.
        RUSTC_BOOTSTRAP: "1",
        CARGO_ENCODED_RUSTFLAGS: artifact.rustFlags.join("\x1f"),
      },
    },
  );
  return join(target, triple, "release", `${artifact.library}.wasm`);
}
