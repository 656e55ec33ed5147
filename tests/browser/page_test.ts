/// <reference lib="dom" />
/** The page of `examples/browser` in headless Chromium, from an empty profile to a chat. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Page } from "playwright-core";
import type { ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { bundle } from "../../core/host/build.ts";
import { respond } from "../../examples/browser/serve.ts";
import { CHROMIUM, openChromium } from "../support/chromium.ts";
import { loopbackServer, serveFile } from "../support/loopback_server.ts";
import { type TinyModelOptions, tinyModelSpec } from "../support/tiny_model.ts";
import { CONTROL_TOKENS } from "../support/tiny_vocabulary.ts";
import { writeGguf } from "../support/gguf_writer.ts";

const example = fileURLToPath(new URL("../../examples/browser/", import.meta.url));

/** A model that hardly ever ends its answers: the logits of its control tokens are 0. */
function talkativeModel(options: TinyModelOptions): Uint8Array<ArrayBuffer> {
  const spec = tinyModelSpec(options);
  const { data, dimensions: [width = 0] } = spec.tensors.find(({ name }) =>
    name === "token_embd.weight"
  )!;
  data.fill(0, 0, CONTROL_TOKENS.length * Number(width) * Float32Array.BYTES_PER_ELEMENT);
  return writeGguf(spec);
}

const model = talkativeModel({ contextLength: 2048 });

/** The example as it is served, with the headers that isolate it or without them. */
function servePage(isolated: boolean) {
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (asked) => {
      const response = await respond(asked);
      if (!isolated) response.headers.delete("cross-origin-embedder-policy");
      return response;
    },
  );
  const origin = `http://127.0.0.1:${server.addr.port}/`;
  return { origin, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** Another origin that offers a model, one that never ends unless it is asked for the rest, and none. */
function serveModels() {
  return loopbackServer((request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("last-modified", "Tue, 01 Dec 2026 00:00:00 GMT");
    if (request.url === "/none.gguf") response.writeHead(404).end();
    else if (request.url === "/slow.gguf" && request.headers.range === undefined) drip(response);
    else serveFile(request, response, model);
  });
}

/** The first half of the model, slowly enough for its progress to be seen. */
function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-length": model.length });
  const step = Math.ceil(model.length / 20);
  let sent = 0;
  const timer = setInterval(() => {
    response.write(model.subarray(sent, sent += step));
    if (sent > model.length / 2) clearInterval(timer);
  }, 30);
}

const text = async (page: Page, selector: string) => await page.textContent(selector) ?? "";

/** Waits until a model runs, and gives what the page says of it. */
async function running(page: Page, name: string): Promise<string> {
  // Until what was clicked is done, the status is that of the model before.
  await ready(page);
  await page.waitForFunction(`document.querySelector("#status").textContent.startsWith("${name} on")
    || !document.querySelector("#error").hidden`);
  assertEquals(await text(page, "#error"), "");
  return await text(page, "#status");
}

const ready = (page: Page) => page.waitForSelector("#choices:not([inert])");

async function pick(page: Page, name: string, bytes: Uint8Array): Promise<void> {
  await ready(page);
  await page.setInputFiles("#file", { name, mimeType: "", buffer: Buffer.from(bytes) });
}

async function load(page: Page, url: string): Promise<void> {
  await ready(page);
  await page.fill("#fetch input", url);
  await page.click("#fetch button");
}

async function error(page: Page): Promise<string> {
  await page.waitForSelector("#error:not([hidden])");
  return await text(page, "#error");
}

/** Asks, and waits for the end of the answer. */
async function ask(page: Page, question: string): Promise<void> {
  await page.fill("#ask textarea", question);
  await page.press("#ask textarea", "Enter");
  await page.waitForSelector("#ask button:text('Send')");
}

interface Token {
  readonly entropy: number;
  readonly figure: string;
  readonly colour: string;
}

const tokens = (page: Page): Promise<Token[]> =>
  page.locator(".answer:last-child .token").evaluateAll((spans) =>
    spans.map((span) => ({
      entropy: Number((span as HTMLElement).style.getPropertyValue("--entropy")),
      figure: (span as HTMLElement).dataset.figure ?? "",
      colour: getComputedStyle(span).backgroundColor,
    }))
  );

Deno.test.beforeAll(() =>
  bundle({ entries: { page: `${example}page.ts` }, folder: `${example}dist` })
);

Deno.test({
  name: "examples/browser",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using site = servePage(true);
    await using plainSite = servePage(false);
    await using models = await serveModels();
    await using browser = await openChromium();
    const page = await browser.context.newPage();
    page.setDefaultTimeout(20_000);
    const failures: string[] = [];
    page.on("pageerror", ({ message }) => failures.push(message));

    await t.step("runs a model from a file, on threads where the page is isolated", async () => {
      await page.goto(site.origin);
      await pick(page, "tiny.gguf", model);
      assertMatch(await running(page, "tiny.gguf"), /^tiny.gguf on wasm \(int8 threads × \d\)$/);
      await page.waitForSelector("#stored li:has-text('tiny.gguf')");
    });

    await t.step("streams an answer and shows the entropy of each token", async () => {
      await page.evaluate(`{
        globalThis.seen = [];
        new MutationObserver(() => seen.push(document.querySelectorAll(".token").length))
          .observe(document.querySelector("#messages"), { childList: true, subtree: true });
      }`);
      await ask(page, "Hello");
      const shown = await tokens(page);
      assertEquals(shown.length, 512);
      const seen: number[] = await page.evaluate("seen");
      assert(new Set(seen).size > 2, `tokens came at once: ${seen}`);
      for (const { figure, entropy } of shown) {
        assertEquals(figure.split(" ")[0], entropy.toFixed(2));
        assertMatch(figure, /^\d\.\d\d nats, p [01]\.\d\d$/);
      }
      assert(new Set(shown.map(({ colour }) => colour)).size > 100);
      const falls = shown.map(({ entropy }, i) => (shown[i - 1]?.entropy ?? 0) - entropy);
      const tau = falls.reduce((sum, fall) => sum + Math.max(0, fall), 0);
      assertMatch(await text(page, ".answer .quiet"), new RegExp(`^τ ${tau.toFixed(1)} nats · `));
    });

    await t.step("stops an answer", async () => {
      await page.evaluate(`{
        const stop = new MutationObserver(() => {
          stop.disconnect();
          document.querySelector("#ask button").click();
        });
        stop.observe(document.querySelector("#messages"), { subtree: true, childList: true });
      }`);
      await ask(page, "And on");
      // What the engine had sent before it heard of it still comes: at most the port's credit.
      const { length } = await tokens(page);
      assert(length < 200, `${length} tokens came`);
      assertEquals(await page.isHidden("#error"), true);
    });

    await t.step("goes on with the conversation after a stop", async () => {
      await ask(page, "More");
      assertEquals([await page.locator(".answer").count(), (await tokens(page)).length], [3, 512]);
    });

    await t.step("begins a new conversation, for one has to fit the context", async () => {
      const answers = () => page.locator(".answer").count();
      await ask(page, "x ".repeat(2000));
      assertMatch(await error(page), /^RequestError: .*2048/);
      await page.click("#fresh");
      assertEquals([await answers(), await page.isHidden("#error")], [0, true]);
      await ask(page, "Hello");
      assertEquals([await answers(), await page.isHidden("#error")], [1, true]);
    });

    await t.step("starts a model anew in mid-answer, with a new conversation", async () => {
      await page.click("#stored li:has-text('tiny.gguf') button:text('Run')");
      await running(page, "tiny.gguf");
      await page.evaluate(`{
        const restart = new MutationObserver(() => {
          if (!document.querySelector(".token")) return;
          restart.disconnect();
          document.querySelector("#stored button").click();
          globalThis.restarted = true;
        });
        restart.observe(document.querySelector("#messages"), { subtree: true, childList: true });
      }`);
      await page.fill("#ask textarea", "Hello");
      await page.press("#ask textarea", "Enter");
      await page.waitForFunction("globalThis.restarted");
      await running(page, "tiny.gguf");
      assertEquals(await page.locator("#messages > *").count(), 0);
      await ask(page, "Hello again");
      assertEquals([await page.locator(".answer").count(), (await tokens(page)).length], [1, 512]);
    });

    await t.step("runs in two tabs at once", async () => {
      const other = await browser.context.newPage();
      await other.goto(site.origin);
      for (const tab of [page, other]) {
        await ready(tab);
        await tab.click("#stored li:has-text('tiny.gguf') button:text('Run')");
        await running(tab, "tiny.gguf");
      }
      await Promise.all([ask(page, "Here"), ask(other, "There")]);
      assertEquals([(await tokens(page)).length, (await tokens(other)).length], [512, 512]);
      await other.close();
    });

    await t.step("says that there is no GPU where one is asked for, and runs without", async () => {
      await page.selectOption("#backend", "webgpu");
      await page.click("#stored li:has-text('tiny.gguf') button:text('Run')");
      assertMatch(await error(page), /^BackendError: Cannot use WebGPU: /);
      assertEquals(await text(page, "#status"), "No model is running");
      await page.selectOption("#backend", "auto");
      await page.click("#stored li:has-text('tiny.gguf') button:text('Run')");
      await running(page, "tiny.gguf");
    });

    await t.step("runs a model from a URL of another origin", async () => {
      await load(page, `${models.origin}/whole.gguf`);
      assertMatch(await running(page, "whole.gguf"), /wasm/);
      assertEquals(models.requests.length, 1);
    });

    await t.step("finds it again after a reload, without asking the server", async () => {
      await page.reload();
      await load(page, `${models.origin}/whole.gguf`);
      await running(page, "whole.gguf");
      await page.reload();
      await page.click("#stored li:has-text('whole.gguf') button:text('Run')");
      await running(page, "whole.gguf");
      assertEquals(models.requests.length, 1);
    });

    await t.step("shows how far a download is, and goes on after it was cancelled", async () => {
      await load(page, `${models.origin}/slow.gguf`);
      await page.waitForFunction(`document.querySelector("#transfer progress").position > 0`);
      assertMatch(
        await text(page, "#transfer output"),
        /^\d\.\d MB of \d\.\d MB, \d+\.\d MB\/s$/,
      );
      await page.click("#transfer button:text('Cancel')");
      await page.waitForSelector("#transfer", { state: "hidden" });
      assertEquals(await page.isHidden("#error"), true);
      await page.reload();
      await page.click("#stored li:has-text('slow.gguf') button:text('Go on')");
      await running(page, "slow.gguf");
      assertMatch(models.requests.at(-1)?.headers.range ?? "", /^bytes=[1-9]\d*-$/);
    });

    await t.step("says by name what is wrong with a file or a URL", async () => {
      await pick(page, "notes.gguf", new TextEncoder().encode("Dear diary"));
      assertEquals(
        await error(page),
        'ModelError: Cannot use notes.gguf: it is no GGUF file, it starts with "Dear"',
      );
      await pick(page, "half.gguf", model.subarray(0, model.length >> 1));
      assertMatch(await error(page), /^ModelError: .*half\.gguf/);
      await load(page, `${models.origin}/none.gguf`);
      assertMatch(await error(page), /^ModelError: Cannot fetch .*: the server answered 404/);
    });

    await t.step("deletes models", async () => {
      const deletions = page.locator("#stored button:text('Delete')");
      while (await deletions.count() > 0) {
        const before = await deletions.count();
        await deletions.first().click();
        await page.waitForFunction(`document.querySelectorAll("#stored li").length < ${before}`);
      }
      await page.reload();
      await ready(page);
      assertEquals(await page.locator("#stored li").count(), 0);
    });

    await t.step("runs on one thread where the page is not isolated", async () => {
      await page.goto(plainSite.origin);
      await pick(page, "tiny.gguf", model);
      assertEquals(await running(page, "tiny.gguf"), "tiny.gguf on wasm (int8 relaxed)");
      await ask(page, "Hello");
      assertEquals((await tokens(page)).length, 512);
    });

    assertEquals(failures, []);
  },
});

Deno.test({
  name: "examples/browser with WebGPU",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using site = servePage(true);
    await using browser = await openChromium("swiftshader");
    const page = await browser.context.newPage();
    page.setDefaultTimeout(120_000);
    // As few kernels as can be, for SwiftShader compiles them slowly: two widths are one.
    const small = talkativeModel({ contextLength: 64, feedForwardSize: 64 });

    await t.step("runs on a GPU that is played only where it is asked for", async () => {
      await page.goto(site.origin);
      await pick(page, "auto.gguf", small);
      assertMatch(await running(page, "auto.gguf"), /on wasm/);
      await page.selectOption("#backend", "webgpu");
      await pick(page, "gpu.gguf", small);
      assertMatch(await running(page, "gpu.gguf"), /on webgpu \(.*swiftshader.*\)$/i);
    });

    await t.step("shows the entropy of each token", async () => {
      await ask(page, "Hi");
      const shown = await tokens(page);
      assertEquals(shown.length, 32);
      assert(shown.every(({ entropy }) => entropy > 0 && entropy < Math.log(320)));
    });
  },
});
