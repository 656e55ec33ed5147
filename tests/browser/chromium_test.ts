/**
 * Every test of `gpu/` once more in Chromium: Dawn on SwiftShader, a WebGPU that shares no code with
 * Deno's wgpu. The store of models runs here too, on a browser's own file system.
 *
 * A test file that is to run here has of Deno just `Deno.test` (with `t.step`), of npm nothing, and of
 * Node nothing that runs: models come from `tests/support/tiny_model.ts`, not from files.
 */
import { assert } from "@std/assert";
import type { Page } from "playwright-core";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundle } from "../../core/host/build.ts";
import { CHROMIUM, openChromium } from "../support/chromium.ts";
import { temporaryDirectory } from "../support/temporary_directory.ts";
import type { Registered } from "./in_page.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const STORE = ["opfs_models_test.ts", "opfs_store_test.ts"].map((file) =>
  `core/host/store/${file}`
);
const FILES = [...STORE, ...testsOf("gpu")];

/** Milliseconds after which a test is taken to hang. */
const PATIENCE = 120_000;

/** An import map reaches what a bundle leaves open. */
const PAGE = `<!doctype html><title>tests</title><link rel="icon" href="data:,">
<script type="importmap">{"imports":{"node:util":"./in_page.js"}}</script>`;

function testsOf(folder: string): string[] {
  if (!existsSync(root + folder)) return [];
  return readdirSync(root + folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith("_test.ts")).map((path) => `${folder}/${path}`).sort();
}

const entryOf = (file: string): string => file.replace(/\.ts$/, "").replaceAll("/", "-");

async function bundleTests(folder: string): Promise<void> {
  const entries = Object.fromEntries(FILES.map((file) => [entryOf(file), root + file]));
  await bundle({
    entries: { ...entries, in_page: `${root}tests/browser/in_page.ts` },
    folder,
    alias: { "@std/assert": `${root}tests/assert.ts` },
  });
}

function serve(folder: string) {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    const type = pathname.endsWith(".wasm") ? "application/wasm" : "text/javascript";
    if (pathname === "/") return new Response(PAGE, { headers: { "content-type": "text/html" } });
    const path = `${folder}${pathname}`;
    if (!existsSync(path)) return new Response("not found", { status: 404 });
    return new Response(Deno.openSync(path).readable, { headers: { "content-type": type } });
  });
  const origin = `http://127.0.0.1:${server.addr.port}`;
  return { origin, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** Runs an expression in the page, over the exports of `in_page.ts`. */
async function inPage<T>(page: Page, expression: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer after ${PATIENCE} ms`)), PATIENCE);
  });
  const answer = page.evaluate(`import("/in_page.js").then((page) => page.${expression})`);
  try {
    return await Promise.race([answer, patience]) as T;
  } finally {
    clearTimeout(timer);
  }
}

Deno.test({
  name: "tests in Chromium",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using folder = await temporaryDirectory();
    await bundleTests(`${folder.path}/bundle`);
    await using site = serve(`${folder.path}/bundle`);
    await using browser = await openChromium("swiftshader");
    for (const file of FILES) {
      const page = await browser.context.newPage();
      page.on("console", (message) => console.log(message.text()));
      await page.goto(site.origin);
      const tests = await inPage<Registered[]>(page, `collect("/${entryOf(file)}.js")`);
      await t.step(file, () => assert(tests.length > 0, "it registers no test"));
      for (const [index, { name, ignore }] of tests.entries()) {
        const fn = async () => {
          const failure = await inPage<string | undefined>(page, `runTest(${index})`);
          if (failure !== undefined) throw new Error(failure);
        };
        await t.step({ name: `${file}: ${name}`, ignore, fn });
      }
      await page.close();
    }
  },
});
