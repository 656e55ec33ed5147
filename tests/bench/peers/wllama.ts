/** wllama, llama.cpp as WASM for browsers, in headless Chromium. */
import type { Page } from "playwright-core";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { CHROMIUM, openChromium } from "../../support/chromium.ts";
import { type Contender, MissingPeerError, type Workload } from "../contender.ts";
import { peerPath } from "./folder.ts";
import { WLLAMA_PAGE } from "./wllama_page.ts";

const TYPES: Record<string, string> = {
  ".js": "text/javascript",
  ".wasm": "application/wasm",
  ".html": "text/html",
};

export type WllamaVersion = "2.4.0" | "newest";

interface Completion {
  readonly first: number;
  readonly rest: number;
  readonly tokens: number;
}

export class WllamaPeer implements Contender {
  readonly name: string;
  readonly #version: WllamaVersion;
  readonly #folder: string;
  #page: Page | undefined;
  #loaded = "";
  #close: (() => Promise<void>) | undefined;

  /** @throws {MissingPeerError} wllama or a Chromium is not installed. */
  constructor(version: WllamaVersion) {
    const alias = version === "newest" ? "wllama-newest" : "wllama-2";
    if (CHROMIUM === undefined) {
      throw new MissingPeerError("Cannot find Chromium: install it, or name it in CHROMIUM");
    }
    this.#version = version;
    this.#folder = peerPath(`wllama ${version}`, "node_modules", alias);
    const manifest = JSON.parse(readFileSync(join(this.#folder, "package.json"), "utf8"));
    this.name = `wllama ${manifest.version}`;
  }

  async measure({ figure, model, threads, depth, tokens }: Workload): Promise<number> {
    const page = this.#page ??= await this.#open(model);
    const wanted = `${model} ${threads}`;
    if (figure === "load" || this.#loaded !== wanted) {
      const seconds = await evaluate<number>(page, `load(${threads}, ${depth + 2048})`);
      this.#loaded = wanted;
      if (figure === "load") return seconds;
    }
    const [prompt, generate] = figure === "prefill" ? [tokens, 2] : [depth + 16, tokens + 1];
    const text = `time${" time".repeat(prompt - 1)}`;
    const run = await evaluate<Completion>(page, `complete(${JSON.stringify(text)}, ${generate})`);
    return figure === "prefill" ? prompt / run.first : run.tokens / run.rest;
  }

  async dispose(): Promise<void> {
    await this.#close?.();
    this.#close = this.#page = undefined;
    this.#loaded = "";
  }

  async #open(model: string): Promise<Page> {
    const server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => respond(new URL(request.url).pathname, this.#folder, model),
    );
    const browser = await openChromium();
    this.#close = async () => {
      await browser[Symbol.asyncDispose]();
      await server.shutdown();
    };
    const page = await browser.context.newPage();
    page.on("pageerror", (error) => console.error(`${this.name}: ${error.message}`));
    await page.goto(`http://127.0.0.1:${server.addr.port}/#${this.#version}`);
    await page.waitForFunction("globalThis.ready === true");
    return page;
  }
}

const evaluate = <T>(page: Page, expression: string): Promise<T> => page.evaluate(expression);

/** Serves the page, wllama's files and the model, isolated so that threads are allowed. */
function respond(path: string, folder: string, model: string): Response {
  const headers = new Headers({
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Content-Type": TYPES[extname(path)] ?? "application/octet-stream",
  });
  if (path === "/") {
    headers.set("Content-Type", "text/html");
    return new Response(WLLAMA_PAGE, { headers });
  }
  const file = path === "/model.gguf" ? model : join(folder, path.replace(/^\/wllama\//, ""));
  if (!existsSync(file)) return new Response("not found", { status: 404, headers });
  return new Response(Deno.openSync(file).readable, { headers });
}
