/** Runs under Deno on a file system in memory, and in Chromium (tests/browser) on its own. */
import { assertEquals, assertRejects } from "@std/assert";
import { MemoryOpfs } from "../../../tests/support/memory_opfs.ts";
import { ModelError } from "../../errors.ts";
import type { BlobSource } from "../../model/memory_source.ts";
import { opfsRoot } from "./opfs.ts";
import { OpfsStore } from "./opfs_store.ts";
import type { TransferProgress } from "./transfer_meter.ts";

const URL_1 = "https://models.test/a/m.gguf";
const content = new TextEncoder().encode("GGUF and the weights");

interface Server {
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
  readonly status?: number;
  /** Does not say how long the file is. */
  readonly silent?: boolean;
  /** Breaks off after so many bytes of an answer. */
  readonly cutAfter?: number;
  /** Called instead of breaking off; the answer stays open then. */
  readonly onHang?: () => void;
}

/** A server of one file that knows ranges, and the ranges it was asked for. */
function serve(server: Server) {
  const { body = content, headers = { etag: '"1"' }, status, cutAfter = Infinity } = server;
  const ranges: (string | null)[] = [];
  const answer = (_: unknown, init: RequestInit = {}): Promise<Response> => {
    const range = new Headers(init.headers).get("range");
    ranges.push(range);
    if (status !== undefined) return Promise.resolve(new Response("no", { status }));
    const rest = body.subarray(Number(range?.match(/\d+/)?.[0] ?? 0));
    const chunks = [rest.slice(0, Math.min(6, cutAfter)), rest.slice(6, cutAfter)];
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        const chunk = chunks.shift();
        if (chunk !== undefined) return controller.enqueue(chunk);
        if (server.onHang !== undefined) return server.onHang();
        if (cutAfter < rest.length) return controller.error(new TypeError("connection lost"));
        controller.close();
      },
    }, { highWaterMark: 0 });
    const length = { ...!server.silent && { "content-length": String(rest.length) } };
    const init206 = { status: range ? 206 : 200, headers: { ...length, ...headers } };
    return Promise.resolve(new Response(stream, init206));
  };
  return { answer: answer as typeof fetch, ranges };
}

/** A store that is empty, whatever tests ran before. */
async function emptyDirectory() {
  const root = await opfsRoot() ?? new MemoryOpfs();
  const directory = await root.getDirectoryHandle(crypto.randomUUID(), { create: true });
  return (server: Server = {}) => {
    const { answer, ranges } = serve(server);
    return OpfsStore.open({ directory, fetch: answer }).then((store) => ({ store, ranges }));
  };
}

const bytesOf = async (source: BlobSource) => new Uint8Array(await source.blob.arrayBuffer());

Deno.test("OpfsStore fetches a model, tells how far it is, and keeps it", async () => {
  const open = await emptyDirectory();
  const { store, ranges } = await open();
  const reports: TransferProgress[] = [];
  const source = await store.fetch(URL_1, { onProgress: (report) => reports.push(report) });
  assertEquals([source.name, await bytesOf(source)], ["m.gguf", content]);
  assertEquals([reports[0]?.bytes, reports[0]?.total], [0, 20]);
  assertEquals([reports.at(-1)?.bytes, reports.at(-1)?.done], [20, true]);
  const kept = { name: "m.gguf", bytes: 20, size: 20, complete: true, url: URL_1 };
  assertEquals(await store.list(), [kept]);
  const later = await open({ status: 500 });
  assertEquals(await bytesOf(await later.store.fetch(URL_1)), content);
  assertEquals(await bytesOf(await later.store.open("m.gguf")), content);
  assertEquals([ranges.length, later.ranges.length], [1, 0]);
});

Deno.test("OpfsStore goes on where a download broke off, and never opens a half", async () => {
  const open = await emptyDirectory();
  const broken = await open({ cutAfter: 9 });
  await assertRejects(() => broken.store.fetch(URL_1), ModelError, "connection lost");
  const [half] = await broken.store.list();
  assertEquals([half?.bytes, half?.size, half?.complete], [9, 20, false]);
  await assertRejects(() => broken.store.open("m.gguf"), ModelError, "it is not whole");
  const { store, ranges } = await open();
  assertEquals(await bytesOf(await store.fetch(URL_1)), content);
  assertEquals(ranges, ["bytes=9-"]);
});

Deno.test("OpfsStore starts again where the file has changed or its version is unknown", async () => {
  const other = new TextEncoder().encode("GGUF, other weights.");
  for (const headers of [{ etag: '"2"' }, { etag: 'W/"1"' }, {}]) {
    const open = await emptyDirectory();
    const broken = await open({ cutAfter: 9 });
    await assertRejects(() => broken.store.fetch(URL_1), ModelError);
    const { store, ranges } = await open({ body: other, headers });
    assertEquals(await bytesOf(await store.fetch(URL_1)), other);
    assertEquals(ranges, ["bytes=9-", null]);
  }
});

Deno.test("OpfsStore keeps no beginning that could not be continued", async () => {
  const { store } = await (await emptyDirectory())({ cutAfter: 9, headers: {} });
  await assertRejects(() => store.fetch(URL_1), ModelError, "connection lost");
  assertEquals(await store.list(), []);
});

Deno.test("OpfsStore stops when it is told to, and goes on later", async () => {
  const open = await emptyDirectory();
  const stop = new AbortController();
  const { store } = await open({ cutAfter: 9, onHang: () => stop.abort() });
  const stopped = () => store.fetch(URL_1, { signal: stop.signal });
  await assertRejects(stopped, DOMException, "abort");
  assertEquals((await store.list())[0]?.complete, false);
  assertEquals(await bytesOf(await (await open()).store.fetch(URL_1)), content);
});

Deno.test("OpfsStore takes the length of a model from its bytes where the server is silent", async () => {
  const { store } = await (await emptyDirectory())({ silent: true });
  await store.fetch(URL_1);
  assertEquals((await store.list()).map(({ size, complete }) => [size, complete]), [[20, true]]);
});

Deno.test("OpfsStore keeps files, and replaces and deletes by name", async () => {
  const { store } = await (await emptyDirectory())();
  await store.fetch(URL_1);
  const file = new File(["GGUF of a file"], "m.gguf");
  assertEquals((await store.add(file)).size, 14);
  const kept = { name: "m.gguf", bytes: 14, size: 14, complete: true, url: undefined };
  assertEquals(await store.list(), [kept]);
  await store.delete("m.gguf");
  await store.delete("m.gguf");
  assertEquals(await store.list(), []);
  await assertRejects(() => store.open("m.gguf"), ModelError, "there is none of this name");
});

Deno.test("OpfsStore says why it cannot keep a model, and keeps nothing of it", async () => {
  const open = await emptyDirectory();
  const page = new TextEncoder().encode("<!doctype html>");
  const failures: [Server, string, string][] = [
    [{ status: 404 }, URL_1, "the server answered 404"],
    [{ body: page }, URL_1, 'it is no GGUF file, it starts with "<!do"'],
    [{}, "https://models.test/", "its path names no file"],
    [{}, "https://", "it is no URL"],
  ];
  for (const [server, url, message] of failures) {
    const { store } = await open(server);
    await assertRejects(() => store.fetch(url), ModelError, message);
    assertEquals(await store.list(), []);
  }
  const { store } = await open();
  await assertRejects(() => store.add(new File(["text"], "a.txt")), ModelError, '"text"');
  assertEquals(await store.list(), []);
});

Deno.test("OpfsStore waits until a file is let go, and says when it never is", async () => {
  const directory = new MemoryOpfs();
  const store = await OpfsStore.open({ directory, fetch: serve({}).answer });
  const folder = await directory.getDirectoryHandle("entropic-time");
  await store.fetch(URL_1);
  folder.refusals = 3;
  await store.delete("m.gguf");
  assertEquals(await store.list(), []);
  folder.refusals = Infinity;
  await assertRejects(() => store.fetch(URL_1), ModelError, "another page is writing it");
});
