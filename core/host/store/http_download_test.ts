import { assert, assertEquals, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type LoopbackServer,
  loopbackServer,
  serveFile,
} from "../../../tests/support/loopback_server.ts";
import { normals, randomNumbers } from "../../../tests/support/random.ts";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import { download } from "./http_download.ts";
import { PartialFile } from "./partial_file.ts";
import { type ReportProgress, TransferMeter, type TransferProgress } from "./transfer_meter.ts";

const content = new Uint8Array(normals(250_000, 1, randomNumbers(3)).buffer);
const sha256 = createHash("sha256").update(content).digest("hex");

interface Attempt {
  readonly folder: string;
  readonly server: LoopbackServer;
  readonly onProgress?: ReportProgress;
  readonly signal?: AbortSignal;
  readonly expected?: string;
}

/** Downloads `/file` into a folder and answers where it then lies. */
async function fetchTo({ folder, server, onProgress, signal, expected }: Attempt): Promise<string> {
  const part = await PartialFile.open(join(folder, "part"));
  try {
    const meter = new TransferMeter("file", onProgress ?? (() => {}));
    const url = new URL("/file", server.origin);
    await download(
      { url, signal: signal ?? new AbortController().signal, retryDelay: 1 },
      part,
      meter,
    );
    const target = join(folder, "done", "file");
    await part.finish(target, expected ?? sha256);
    return target;
  } finally {
    await part.close();
  }
}

async function assertContent(path: string): Promise<void> {
  assertEquals(createHash("sha256").update(await readFile(path)).digest("hex"), sha256);
}

Deno.test("download fetches a file and reports its progress", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, content);
  });
  const reports: TransferProgress[] = [];
  const onProgress = (report: TransferProgress) => reports.push(report);
  await assertContent(await fetchTo({ folder: directory.path, server, onProgress }));
  assertEquals(reports[0]?.total, content.length);
  assertEquals(reports.at(-1), { ...reports.at(-1)!, bytes: content.length, done: true });
});

Deno.test("download follows redirects", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    if (request.url === "/elsewhere") serveFile(request, response, content);
    else response.writeHead(302, { location: "/elsewhere" }).end();
  });
  await assertContent(await fetchTo({ folder: directory.path, server }));
});

Deno.test("download goes on where the connection broke off", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response, number) => {
    serveFile(request, response, content, {
      etag: '"v1"',
      ...(number < 6 && { cutAfter: 100_000 }),
    });
  });
  await assertContent(await fetchTo({ folder: directory.path, server }));
  const ranges = server.requests.map(({ headers }) => headers.range);
  assertEquals(ranges[0], undefined);
  assert(ranges.slice(1).every((range) => /^bytes=[1-9]\d*-$/.test(range!)), ranges.join());
  assertEquals(server.requests[1]!.headers["if-range"], '"v1"');
});

Deno.test("download does not go on with the beginning of another URL", async () => {
  await using directory = await temporaryDirectory();
  const abort = new AbortController();
  {
    await using server = await loopbackServer((request, response) => {
      serveFile(request, response, content, { etag: '"v1"', cutAfter: 300_000 });
    });
    await assertRejects(() =>
      fetchTo({
        folder: directory.path,
        server,
        signal: abort.signal,
        onProgress: ({ bytes }) => bytes > 0 && abort.abort(),
      })
    );
  }
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, content, { etag: '"v1"' });
  });
  // The server has another port.
  await assertContent(await fetchTo({ folder: directory.path, server }));
  assertEquals(server.requests[0]!.headers.range, undefined);
});

Deno.test("download starts anew when the file has changed meanwhile", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response, number) => {
    if (number === 0) {
      const old = new Uint8Array(content.length);
      serveFile(request, response, old, { etag: '"v1"', cutAfter: 100_000 });
    } else serveFile(request, response, content, { etag: '"v2"' });
  });
  await assertContent(await fetchTo({ folder: directory.path, server }));
});

Deno.test("download starts anew when the server has no ranges or no strong validator", async () => {
  for (const etag of [undefined, 'W/"weak"']) {
    await using directory = await temporaryDirectory();
    await using server = await loopbackServer((request, response, number) => {
      serveFile(request, response, content, {
        ...(etag && { etag }),
        ...(number === 0 && { cutAfter: 100_000 }),
      });
    });
    await assertContent(await fetchTo({ folder: directory.path, server }));
    assertEquals(server.requests.map(({ headers }) => headers.range), [undefined, undefined]);
  }
});

Deno.test("download refuses a range that it did not ask for, and starts anew", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response, number) => {
    if (number === 0) serveFile(request, response, content, { etag: '"v1"', cutAfter: 100_000 });
    else if (number === 1) {
      response.writeHead(206, { "content-range": `bytes 5-9/${content.length}` }).end("wrong");
    } else serveFile(request, response, content, { etag: '"v1"' });
  });
  await assertContent(await fetchTo({ folder: directory.path, server }));
});

Deno.test("download asks again when the server sends less than the rest", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response, number) => {
    if (number === 0) serveFile(request, response, content, { etag: '"v1"', cutAfter: 100_000 });
    else {
      const start = Number(request.headers.range!.match(/\d+/)![0]);
      const piece = content.subarray(start, start + 400_000);
      response.writeHead(206, {
        "content-range": `bytes ${start}-${start + piece.length - 1}/${content.length}`,
        "content-length": piece.length,
      }).end(piece);
    }
  });
  await assertContent(await fetchTo({ folder: directory.path, server }));
  assert(server.requests.length >= 4);
});

Deno.test("download gives up after some attempts without a new byte", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, content, { cutAfter: 1000 });
  });
  await assertRejects(() => fetchTo({ folder: directory.path, server }));
  assertEquals(server.requests.length, 4);
});

Deno.test("download does not try again what the server refuses", async () => {
  for (const status of [401, 403, 404, 410]) {
    await using directory = await temporaryDirectory();
    await using server = await loopbackServer((_, response) => {
      response.writeHead(status).end("no");
    });
    await assertRejects(
      () => fetchTo({ folder: directory.path, server }),
      Error,
      `the server answered ${status}`,
    );
    assertEquals(server.requests.length, 1);
  }
});

Deno.test("download tries again what may pass", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response, number) => {
    if (number < 2) response.writeHead(503).end("busy");
    else serveFile(request, response, content);
  });
  await assertContent(await fetchTo({ folder: directory.path, server }));
});

Deno.test("download does not try again when it is aborted", async () => {
  await using directory = await temporaryDirectory();
  const abort = new AbortController();
  await using server = await loopbackServer(() => abort.abort(new Error("enough")));
  await assertRejects(
    () => fetchTo({ folder: directory.path, server, signal: abort.signal }),
    Error,
    "enough",
  );
  assertEquals(server.requests.length, 1);
});

Deno.test("PartialFile drops content with another sha256", async () => {
  await using directory = await temporaryDirectory();
  await using server = await loopbackServer((request, response) => {
    serveFile(request, response, content, { etag: '"v1"' });
  });
  const expected = "0".repeat(64);
  await assertRejects(
    () => fetchTo({ folder: directory.path, server, expected }),
    Error,
    `sha256 is ${sha256}, expected ${expected}`,
  );
  // The next try does not go on with the bad bytes.
  await assertContent(await fetchTo({ folder: directory.path, server }));
  assertEquals(server.requests.map(({ headers }) => headers.range), [undefined, undefined]);
});
