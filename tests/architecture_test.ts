/** The rules that keep the project in shape: dependencies, cycles, sizes, nothing machine-bound. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { importCycles, importsOf, usesName } from "./architecture/imports.ts";
import { violation } from "./architecture/rules.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = listFiles();
const sources = new Map(
  files.filter((path) => path.endsWith(".ts") && !path.startsWith("wasm/lib/"))
    .map((path) => [path, readFileSync(`${root}${path}`, "utf8")]),
);
const imports = [...sources].flatMap(([path, text]) => importsOf(path, text));

/** Files that git tracks or would track. */
function listFiles(): string[] {
  const listed = execFileSync(
    "git",
    ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    { cwd: root, encoding: "utf8" },
  );
  return [...new Set(listed.split("\0"))]
    .filter((path) =>
      path !== "" && statSync(`${root}${path}`, { throwIfNoEntry: false })?.isFile()
    )
    .sort();
}

Deno.test("architecture: every import obeys the dependency rules", () => {
  const broken = imports.flatMap((found) => {
    const why = violation(found);
    return why === undefined ? [] : [`${found.from}:${found.line} imports ${found.to}: ${why}`];
  });
  assertEquals(broken, []);
});

Deno.test("architecture: no import cycles", () => {
  assertEquals(importCycles(imports).map((cycle) => cycle.join(" -> ")), []);
});

Deno.test("architecture: only the adapters use the globals of one runtime", () => {
  const adapters = /^(core\/host\/|examples\/|tests\/|wasm\/build)|_test\.ts$/;
  const users = [...sources]
    .filter(([path, text]) => !adapters.test(path) && usesName(text, ["Deno", "Bun"]))
    .map(([path]) => path);
  assertEquals(users, []);
});

Deno.test("architecture: no source file outgrows its reader", () => {
  const limit = 400;
  const long = [...sources].map(([path, text]) => ({ path, lines: text.split("\n").length }))
    .filter(({ lines }) => lines > limit);
  assertEquals(long, []);
});

Deno.test("architecture: no large file is tracked", () => {
  const limit = (path: string) => path.startsWith("wasm/lib/") ? 4 << 20 : 2 << 20;
  const large = files.map((path) => ({ path, bytes: statSync(`${root}${path}`).size }))
    .filter(({ path, bytes }) => bytes > limit(path));
  assertEquals(large, []);
});

Deno.test("architecture: no tracked file names this machine", () => {
  const marks = machineMarks();
  const found = files.filter((path) => !/\.(gguf|wasm|png|jpg)$/.test(path)).flatMap((path) => {
    const text = readFileSync(`${root}${path}`, "utf8");
    return marks.filter((mark) => mark.test(text)).map((mark) => `${path}: ${mark}`);
  });
  assertEquals(found, []);
});

/** Home folders, the folder of this checkout, and hosts of private registries. */
function machineMarks(): RegExp[] {
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const publicHosts = /(^|\.)(npmjs\.org|pypi\.org|crates\.io|127\.0\.0\.1|localhost)$/;
  const registries = ["npm_config_registry", "NPM_CONFIG_REGISTRY", "PIP_INDEX_URL"]
    .map((name) => process.env[name]).filter((url) => url !== undefined && URL.canParse(url))
    .map((url) => new URL(url as string).hostname).filter((host) => !publicHosts.test(host));
  const checkout = root.split("/").filter(Boolean).length > 1 ? [root.replace(/\/$/, "")] : [];
  return [
    /(^|[\s"'`(=:])(\/home\/[a-z][\w-]*|\/Users\/[A-Za-z][\w-]*|\/root)\//,
    ...[...checkout, ...registries].map((text) => new RegExp(escaped(text))),
  ];
}

Deno.test("architecture: deno.json and package.json agree on every dependency", () => {
  const deno = JSON.parse(readFileSync(`${root}deno.json`, "utf8"));
  const node = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  const mapped = Object.entries<string>(deno.imports).filter(([, to]) => to.startsWith("npm:"))
    .map(([name, to]) => [name, to.slice(`npm:${name}@`.length)]);
  assertEquals(Object.fromEntries(mapped), { ...node.dependencies, ...node.devDependencies });
  assertEquals(node.version, deno.version);
});

Deno.test("architecture: the checker catches a planted violation of each kind", () => {
  const planted: [path: string, text: string, expected: string][] = [
    ["core/entropic/a.ts", 'import type { X } from "../engine/b.ts"', "may import itself and none"],
    ["core/engine/a.ts", 'export * from "../../wasm/backend.ts"', "is a concrete backend"],
    ["core/host/a.ts", 'await import("../../wasm/backend.ts")', "is a concrete backend"],
    ["core/server/a.ts", 'import "../engine/scheduler.ts"', "core/server/ may import itself and"],
    ["wasm/a.ts", 'import { b } from "../gpu/b.ts"', "wasm/ may import itself and"],
    ["core/model/a.ts", 'import fs from "node:fs"', "@huggingface/jinja of all packages"],
    ["mod.ts", 'export { a } from "./tests/a.ts"', "only tests may import it"],
    ["stray/a.ts", 'import "./b.ts"', "lies in no area"],
  ];
  for (const [path, text, expected] of planted) {
    const reasons = importsOf(path, text).map((found) => violation(found) ?? "allowed");
    assertEquals(reasons.length, 1, text);
    assertStringIncludes(reasons[0] ?? "", expected);
  }
});

Deno.test("architecture: the checker lets the allowed imports pass", () => {
  const allowed: [path: string, text: string][] = [
    ["core/engine/a.ts", 'import { b } from "../entropic/b.ts"'],
    ["mod.ts", 'import { b } from "./wasm/backend.ts"'],
    ["wasm/a.ts", 'import { b } from "./backend.ts"'],
    ["core/engine/a_test.ts", 'import { b } from "../../wasm/backend.ts"'],
    ["core/server/a.ts", 'import { html } from "hono/html"'],
    ["core/errors.ts", '// import "./b.ts"\nconst s = `import "./b.ts"`;'],
  ];
  const reasons = allowed.flatMap(([path, text]) => importsOf(path, text).map((i) => violation(i)));
  assertEquals(reasons, new Array(5).fill(undefined));
});

Deno.test("architecture: usesName looks at code, not at comments and strings", () => {
  assertEquals(usesName("export const a = () => ({ b: `${Deno.cwd()}` });", ["Deno"]), true);
  assertEquals(usesName("// Deno.cwd()\nconst a = 'Deno.cwd()', b = /Deno/;", ["Deno"]), false);
});

Deno.test("architecture: importCycles finds a cycle through types and names its files", () => {
  const graph = [
    importsOf("a.ts", 'import "./b.ts"'),
    importsOf("b.ts", 'import type { C } from "./c/c.ts"'),
    importsOf("c/c.ts", 'export * from "../a.ts"'),
    importsOf("d.ts", 'import "./a.ts"; import "./b.ts"'),
  ].flat();
  assertEquals(importCycles(graph), [["a.ts", "b.ts", "c/c.ts", "a.ts"]]);
  assertEquals(importCycles(graph.filter(({ from }) => from !== "c/c.ts")), []);
});
