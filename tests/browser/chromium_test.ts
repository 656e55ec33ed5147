/**
 * Every test of `gpu/` once more in Chromium: Dawn on SwiftShader, a WebGPU that shares no code with
 * Deno's wgpu. The store of models runs here too, on a browser's own file system.
 *
 * SwiftShader compiles a large kernel for two seconds, and a whole model has a dozen: the tests of
 * kernels always run, those of the backend and of the real model with ENTROPIC_CHROMIUM=all.
 *
 * A test file that is to run here has of Deno just `Deno.test` (with `t.step`), of npm nothing, and of
 * Node nothing that runs but what `in_page.ts` stands in for: models come from
 * `tests/support/tiny_model.ts` and `real_model_location.ts`, not from files.
 */
import { assert } from "@std/assert";
import type { Page } from "playwright-core";
import { existsSync, readdirSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { bundle } from "../../core/host/build.ts";
import { type Browser, CHROMIUM, openChromium } from "../support/chromium.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import { MODEL_PATH } from "../support/real_model_location.ts";
import { temporaryDirectory } from "../support/temporary_directory.ts";
import type { Registered } from "./in_page.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const STORE = ["opfs_models_test.ts", "opfs_store_test.ts"].map((file) =>
  `core/host/store/${file}`
);
const GPU = process.env.ENTROPIC_CHROMIUM === "all"
  ? [...testsOf("gpu"), ...["draws", "engine", "real_model", "real_parity"].map(acrossTest)]
  : testsOf("gpu/kernels");
const FILES = [...STORE, ...GPU];

/** Milliseconds after which a test is taken to hang. */
const PATIENCE = 300_000;

/** Browsers at work at a time: SwiftShader compiles a shader for seconds, one at a time in each. */
const LANES = Math.min(4, navigator.hardwareConcurrency);

/** An import map reaches what a bundle leaves open. */
const PAGE = `<!doctype html><title>tests</title><link rel="icon" href="data:,">
<script type="importmap">
{"imports":{"node:process":"./in_page.js","node:util":"./in_page.js"}}
</script>`;

/** Of `tests/gpu`, those that start no server. */
function acrossTest(name: string): string {
  return `tests/gpu/${name}_test.ts`;
}

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
    const path = pathname === MODEL_PATH ? REAL_MODEL : `${folder}${pathname}`;
    if (path === undefined || !existsSync(path)) return new Response("not found", { status: 404 });
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

/** One test of a file. */
interface Job extends Registered {
  readonly file: string;
  readonly index: number;
  /** What went wrong, or `undefined`; settles when a lane has run it. */
  readonly outcome: PromiseWithResolvers<string | undefined>;
}

/** A browser with one test file in it at a time. */
class Lane implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #page: Page;
  readonly #origin: string;
  #file = "";

  private constructor(browser: Browser, page: Page, origin: string) {
    this.#browser = browser;
    this.#page = page;
    this.#origin = origin;
    page.on("console", (message) => console.log(message.text()));
  }

  static async open(origin: string): Promise<Lane> {
    const browser = await openChromium("swiftshader");
    return new Lane(browser, await browser.context.newPage(), origin);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser[Symbol.asyncDispose]();
  }

  async collect(file: string): Promise<Job[]> {
    await this.#page.goto(this.#origin);
    this.#file = file;
    const tests = await inPage<Registered[]>(this.#page, `collect("/${entryOf(file)}.js")`);
    assert(tests.length > 0, `${file} registers no test`);
    return tests.map((test, index) => ({
      ...test,
      file,
      index,
      outcome: Promise.withResolvers<string | undefined>(),
    }));
  }

  /** Runs what other lanes leave. */
  async work(jobs: Iterator<Job>): Promise<void> {
    for (let next = jobs.next(); !next.done; next = jobs.next()) {
      const { file, index, ignore, outcome } = next.value;
      try {
        if (file !== this.#file) await this.collect(file);
        const run = ignore
          ? undefined
          : inPage<string | undefined>(this.#page, `runTest(${index})`);
        outcome.resolve(await run);
      } catch (error) {
        outcome.resolve(String(error));
      }
    }
  }
}

Deno.test({
  name: "tests in Chromium",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using folder = await temporaryDirectory();
    await bundleTests(`${folder.path}/bundle`);
    await using site = serve(`${folder.path}/bundle`);
    await using opened = new AsyncDisposableStack();
    const lanes: Lane[] = [];
    for (let lane = 0; lane < LANES; lane++) {
      lanes.push(opened.use(await Lane.open(site.origin)));
    }
    const jobs: Job[] = [];
    for (const file of FILES) jobs.push(...await lanes[0]!.collect(file));
    const queue = jobs.values();
    const working = Promise.all(lanes.map((lane) => lane.work(queue)));
    for (const { file, name, ignore, outcome } of jobs) {
      const fn = async () => {
        const failure = await outcome.promise;
        if (failure !== undefined) throw new Error(failure);
      };
      // A step only waits for what runs beside all of them.
      const sanitizers = { sanitizeOps: false, sanitizeResources: false, sanitizeExit: false };
      await t.step({ name: `${file}: ${name}`, ignore, fn, ...sanitizers });
    }
    await working;
  },
});
