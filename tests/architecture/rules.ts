/** Which part of the project may import what, as data, and the check that applies it. */
import type { Import } from "./imports.ts";

/** What the files under a path may import besides each other. */
export interface Area {
  /** A folder (ends in `/`) or a file. The longest match decides. */
  readonly path: string;
  /** Folders and files of the project. */
  readonly may: readonly string[];
  /** Packages, by name; `node:` stands for Node's builtins, `*` for every package. */
  readonly packages: readonly string[];
}

/** What any part may say no with. */
const REFUSALS = ["core/errors.ts", "core/options.ts"];
const CONTRACTS = ["core/engine/backend.ts", "core/errors.ts"];
/** The contract, and what every backend that implements it has to check and to count. */
const BACKEND_KIT = [
  ...CONTRACTS,
  "core/engine/arithmetic.ts",
  "core/engine/attention_cost.ts",
  "core/engine/backend_checks.ts",
  "core/engine/backend_limits.ts",
  "core/engine/backend_pruning.ts",
];

export const AREAS: readonly Area[] = [
  { path: "core/errors.ts", may: [], packages: [] },
  { path: "core/options.ts", may: [], packages: [] },
  { path: "core/entropic/", may: [], packages: [] },
  { path: "core/model/", may: ["core/errors.ts"], packages: ["@huggingface/jinja"] },
  {
    path: "core/engine/",
    may: ["core/entropic/", "core/model/", ...REFUSALS],
    packages: [],
  },
  {
    path: "core/language_model.ts",
    may: ["core/engine/engine.ts", "core/model/"],
    packages: [],
  },
  {
    path: "core/generate.ts",
    may: ["core/engine/engine.ts", "core/model/", "core/language_model.ts", ...REFUSALS],
    packages: [],
  },
  {
    path: "core/server/",
    may: [
      "core/engine/engine.ts",
      "core/entropic/",
      "core/model/",
      "core/language_model.ts",
      "core/engine/backend.ts",
      ...REFUSALS,
    ],
    packages: ["hono", "@hono/zod-openapi", "zod"],
  },
  {
    path: "core/host/",
    may: ["core/", "wasm/", "gpu/", "mod.ts"],
    packages: ["node:", "@hono/node-server", "@zip.js/zip.js", "hono", "ml-matrix"],
  },
  { path: "core/host/build.ts", may: [], packages: ["node:", "esbuild"] },
  { path: "wasm/", may: ["core/model/", ...BACKEND_KIT], packages: ["node:"] },
  { path: "wasm/build/", may: [], packages: ["node:", "npm:"] },
  { path: "wasm/build.ts", may: ["wasm/build/"], packages: ["node:"] },
  { path: "gpu/", may: ["core/model/", ...BACKEND_KIT], packages: [] },
  { path: "mod.ts", may: ["core/", "wasm/", "gpu/"], packages: [] },
  { path: "examples/", may: ["mod.ts"], packages: ["*"] },
  { path: "tests/", may: [""], packages: ["*"] },
];

/** Files that only these may name: the concrete backends. */
export const BACKENDS: readonly string[] = ["wasm/backend.ts", "gpu/backend.ts"];
export const BACKEND_USERS: readonly string[] = [
  "mod.ts",
  "core/host/open_engine.ts",
  "examples/",
  "tests/",
];

const TEST_FILE = /(^tests\/|_test\.ts$)/;

/** Why this import is not allowed, or `undefined` where it is. */
export function violation(found: Import, areas: readonly Area[] = AREAS): string | undefined {
  const { from, to, internal } = found;
  if (TEST_FILE.test(from)) return undefined;
  if (internal && TEST_FILE.test(to)) return `${to} is a test: only tests may import it`;
  const area = areas.filter(({ path }) => within(from, path))
    .sort((a, b) => b.path.length - a.path.length)[0];
  if (area === undefined) return `${from} lies in no area of tests/architecture/rules.ts`;
  if (!internal) {
    const allowed = area.packages.some((name) => name === "*" || isPackage(to, name));
    return allowed ? undefined : `${area.path} may import ${list(area.packages)} of all packages`;
  }
  if (BACKENDS.includes(to) && !inSameArea(from, to) && !someWithin(from, BACKEND_USERS)) {
    return `${to} is a concrete backend: only ${list(BACKEND_USERS)} may name it`;
  }
  if (within(to, area.path) || someWithin(to, area.may)) return undefined;
  return `${area.path} may import itself and ${list(area.may)}`;
}

const within = (file: string, path: string): boolean =>
  path === "" || path === file || (path.endsWith("/") && file.startsWith(path));

const someWithin = (file: string, paths: readonly string[]): boolean =>
  paths.some((path) => within(file, path));

const inSameArea = (a: string, b: string): boolean => a.split("/")[0] === b.split("/")[0];

const isPackage = (specifier: string, name: string): boolean =>
  name.endsWith(":")
    ? specifier.startsWith(name)
    : specifier === name || specifier.startsWith(`${name}/`);

const list = (names: readonly string[]): string => names.length === 0 ? "none" : names.join(", ");
