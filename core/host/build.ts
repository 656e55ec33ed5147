/**
 * `deno task build`: bundles the library into `dist/` as ESM for Node, Bun, edge hosts and browsers.
 * `mod.js` and every module that a `new URL("…", import.meta.url)` names (workers, WASM files) lie
 * side by side, so that these URLs keep working.
 *
 * `deno run -A core/host/build.ts FILE FOLDER` bundles another module, a page's script for one.
 */
import { build, type Plugin, stop } from "esbuild";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface BundleOptions {
  /** Output names, without an extension, to source files. */
  readonly entries: Readonly<Record<string, string>>;
  /** Where the bundle goes. What is in it is deleted. */
  readonly folder: string;
  /** Code that runs first, in each module. */
  readonly banner?: string;
  /** What else packages are called, to source files. */
  readonly alias?: Readonly<Record<string, string>>;
}

/** What the sources refer to by URL, found while bundling. */
interface Referenced {
  /** Entry points of their own: output name to source file. */
  readonly modules: Map<string, string>;
  /** Files that are copied as they are, of a folder its WASM: output name to source file. */
  readonly files: Map<string, string>;
}

/** The packages of `package.json`, laid out as esbuild looks for them, in a folder of their own. */
function installPackages(folder: string): string {
  copyFileSync(join(root, "package.json"), join(folder, "package.json"));
  execFileSync(Deno.execPath(), ["install", "--quiet", "--prod", "--node-modules-dir=auto"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return join(folder, "node_modules");
}

/** Bundles modules and the workers they start, and copies the files they load. */
export async function bundle(options: BundleOptions): Promise<void> {
  const packages = mkdtempSync(join(tmpdir(), "entropic-build-"));
  try {
    await bundleWith(installPackages(packages), options);
  } finally {
    rmSync(packages, { recursive: true, force: true });
    await stop();
  }
}

async function bundleWith(packages: string, options: BundleOptions): Promise<void> {
  const { folder, banner = "", alias = {} } = options;
  const referenced: Referenced = {
    modules: new Map(Object.entries(options.entries)),
    files: new Map(),
  };
  rmSync(folder, { recursive: true, force: true });
  let known = 0;
  while (known < referenced.modules.size) {
    known = referenced.modules.size;
    await build({
      entryPoints: Object.fromEntries(referenced.modules),
      outdir: folder,
      bundle: true,
      splitting: true,
      format: "esm",
      target: "es2022",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["worker", "import"],
      chunkNames: "chunk-[hash]",
      plugins: [urlReferences(referenced), nodeBuiltins],
      logLevel: "warning",
      absWorkingDir: root,
      nodePaths: [packages],
      banner: { js: banner },
      alias: { ...alias },
    });
  }
  for (const [name, path] of referenced.files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    copyFileSync(path, join(folder, name));
  }
}

const URL_REFERENCE = /new URL\(\s*["']([^"']+)["'],\s*import\.meta\.url,?\s*\)/g;

/** Points `new URL("./x", import.meta.url)` at where `x` will lie in the bundle. */
function urlReferences({ modules, files }: Referenced): Plugin {
  return {
    name: "url-references",
    setup({ onLoad }) {
      onLoad({ filter: /\.[jt]s$/ }, ({ path }) => {
        if (path.includes("node_modules")) return undefined;
        const contents = readFileSync(path, "utf8").replace(URL_REFERENCE, (whole, reference) => {
          const target = join(dirname(path), reference);
          if (!existsSync(target)) return whole;
          if (/\.[jt]s$/.test(target)) {
            const name = relative(root, target).replace(/\.[jt]s$/, "").replaceAll("/", "-");
            modules.set(name, target);
            return `new URL("./${name}.js", import.meta.url)`;
          }
          return `new URL("./${addFiles(target, files)}", import.meta.url)`;
        });
        return { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
      });
    },
  };
}

/** Notes a file, or the WASM files of a folder, for copying; returns its path in the bundle. */
function addFiles(target: string, files: Map<string, string>): string {
  if (statSync(target).isDirectory()) {
    const names = readdirSync(target).filter((name) => name.endsWith(".wasm"));
    for (const name of names) addFiles(join(target, name), files);
    return `${basename(target)}/`;
  }
  const name = `${basename(dirname(target))}/${basename(target)}`;
  files.set(name, target);
  return name;
}

/** Node's builtins stay imports, also where a CommonJS package requires them by their bare name. */
const nodeBuiltins: Plugin = {
  name: "node-builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?[a-z_/0-9]+$/ }, ({ path, kind }) => {
      if (!isBuiltin(path)) return undefined;
      const name = path.startsWith("node:") ? path : `node:${path}`;
      return kind === "require-call"
        ? { path: name, namespace: "node-builtin" }
        : { path: name, external: true };
    });
    onLoad({ filter: /./, namespace: "node-builtin" }, ({ path }) => ({
      contents: `export * from "${path}"; export { default } from "${path}";`,
    }));
  },
};

if (import.meta.main) {
  const [file = join(root, "mod.ts"), folder = join(root, "dist")] = Deno.args;
  const name = basename(file).replace(/\.ts$/, "");
  await bundle({ entries: { [name]: resolve(file) }, folder: resolve(folder) });
}
