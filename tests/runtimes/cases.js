/**
 * What every runtime has to do, as `node:test` cases: Node runs them on the bundle, Bun on the
 * sources. Plain JavaScript, because Node 20 reads nothing else. The environment names the files of
 * the models: ENTROPIC_TINY_MODEL and, where there is one, ENTROPIC_TEST_MODEL.
 */
import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { readFile } from "node:fs/promises";
import process from "node:process";
import test from "node:test";

const { ENTROPIC_TINY_MODEL: TINY, ENTROPIC_TEST_MODEL: REAL } = process.env;

/** What the tiny model says after `PROMPT`, drawn at temperature 1 by seed 7, on every runtime. */
const PROMPT = "Hello";
const DRAWN = [68, 187, 187, 187, 187, 187, 146, 129, 129, 129, 129, 129];

/**
 * @param {typeof import("../../mod.ts")} library
 * @param {{ readonly variant: string, readonly worker: boolean, readonly gpuPackage: string }} expected
 * What this runtime picks and has, and which package would give it WebGPU.
 */
export function runtimeCases({ entropic, generate, loadModel, BlobSource }, expected) {
  const withModel = async (options, use) => {
    const model = await loadModel({ model: TINY, ...options });
    try {
      return await use(model);
    } finally {
      await model.engine.dispose();
    }
  };
  const draw = async (model) => {
    const tokens = [];
    const options = { maxTokens: 12, temperature: 1, seed: 7n };
    for await (const { token } of generate(model, PROMPT, options)) tokens.push(token);
    return tokens;
  };

  test("loadModel picks the WASM variant that this runtime can run", () =>
    withModel({}, ({ engine }) => {
      assert.equal(engine.info.backend.variant, `int8 ${expected.variant}`);
    }));

  test("generate gives the same tokens on every runtime", () =>
    withModel({}, async (model) => assert.deepEqual(await draw(model), DRAWN)));

  test("loadModel takes the bytes of a model", async () => {
    const bytes = new BlobSource("tiny.gguf", await openAsBlob(TINY));
    await withModel({ model: [bytes] }, async (model) => {
      assert.deepEqual(await draw(model), DRAWN);
    });
  });

  if (expected.worker) {
    test("an engine in a Worker gives the same tokens", () =>
      withModel({ worker: true }, async (model) => assert.deepEqual(await draw(model), DRAWN)));

    test("an engine in a Worker takes the bytes of a model", async () => {
      const bytes = new BlobSource("tiny.gguf", new Blob([await readFile(TINY)]));
      await withModel({ model: [bytes], worker: true }, async (model) => {
        assert.deepEqual(await draw(model), DRAWN);
      });
    });
  }

  test("entropic answers a chat request, whole and streamed", () =>
    withModel({ id: "tiny" }, async (model) => {
      const app = entropic(model);
      const ask = (fields) =>
        app.request("/v1/chat/completions", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({
            model: "tiny",
            messages: [{ role: "user", content: PROMPT }],
            max_tokens: 8,
            temperature: 0,
            ...fields,
          }),
        });
      const whole = await (await ask({})).json();
      const stream = await (await ask({ stream: true })).text();
      const chunks = stream.split("\n\n").filter((event) => event.startsWith("data: {"))
        .map((event) => JSON.parse(event.slice(6)));
      const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
      assert.equal(text, whole.choices[0].message.content);
      assert.match(stream, /data: \[DONE\]\n\n$/);
    }));

  test(
    "loadModel runs on WebGPU, or says what is missing",
    { timeout: 120_000 }, // A processor that plays a GPU compiles the kernels for half a minute.
    async (t) => {
      const first = (backend) =>
        withModel({ backend }, async (model) => {
          for await (const { entropy } of generate(model, PROMPT, { maxTokens: 2 })) {
            return { kind: model.engine.info.backend.kind, entropy };
          }
        });
      const installed = await import(expected.gpuPackage).then(() => true, () => false);
      const found = await first("webgpu").catch(({ message }) => message);
      if (!installed) {
        return assert.match(found, new RegExp(`install the package ${expected.gpuPackage}$`));
      }
      if (/no adapter/.test(found)) return t.skip("no adapter that Dawn takes");
      assert.equal(found.kind, "webgpu", found);
      const { entropy } = await first("wasm");
      // WASM rounds to 8 bits, WebGPU does not.
      assert.ok(Math.abs(found.entropy - entropy) < 0.1, `${found.entropy}, on WASM ${entropy}`);
    },
  );

  test(
    "the real model knows the capital of France",
    { skip: REAL === undefined },
    () =>
      withModel({ model: REAL, context: 256 }, async (model) => {
        let answer = "";
        const tokens = generate(model, "The capital of France is", { maxTokens: 8 });
        for await (const { text } of tokens) answer += text;
        assert.match(answer, /Paris/);
      }),
  );
}
