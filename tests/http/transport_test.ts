/** What concerns HTTP itself: bodies, methods, keys, CORS, routes. */
import { assert, assertEquals } from "@std/assert";
import { Hono } from "hono";
import { entropic } from "../../core/server/app.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, chat, expectError, MESSAGES, post } from "./requests.ts";

Deno.test("a malformed body is 400 with its position", async () => {
  const app = entropic(fakeModel());
  const cases: readonly [body: string, ...says: string[]][] = [
    ["", "empty"],
    ["{", "unexpected end at position 1"],
    ['{"messages": [}', 'unexpected "}" at position 14 (line 1, column 15)'],
    ['{"a": 1,\n "b": NaN}', 'unexpected "N" at position 15 (line 2, column 7)'],
    ['{"temperature": Infinity}', "position 16"],
    ["[".repeat(1_000_000), "unexpected end at position 1000000"],
    ['{"messages":"😀", x}', "position 18"],
  ];
  for (const [body, ...says] of cases) {
    const response = await post(app, CHAT, body);
    await expectError(app, response, { status: 400, code: "invalid_json", says });
  }
});

Deno.test("a body that is JSON but no object is 400", async () => {
  const app = entropic(fakeModel());
  for (const body of ["[]", '"text"', "5", "null", "true"]) {
    const says = ["request body", "a JSON object"];
    await expectError(app, await post(app, CHAT, body), { status: 400, param: null, says });
  }
});

Deno.test("a body over the limit is 413, with and without a declared length", async () => {
  const app = entropic({ model: fakeModel(), bodyLimit: 1000 });
  const body = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(1000) }] });
  const expected = { status: 413, code: "body_too_large", says: ["1000 bytes"] };
  const length = { "content-length": String(body.length) };
  await expectError(app, await post(app, CHAT, body, { headers: length }), expected);
  let sent = 0;
  const chunked = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent++;
      controller.enqueue(new TextEncoder().encode("x".repeat(100)));
    },
  });
  const init = { body: chunked, duplex: "half" } as RequestInit;
  await expectError(app, await post(app, CHAT, "", init), expected);
  assert(sent < 20, `read ${sent} chunks of an endless body`);
});

Deno.test("a chunked body within the limit is read", async () => {
  const app = entropic({ model: fakeModel(), bodyLimit: 1000 });
  const body = new Blob([JSON.stringify({ messages: MESSAGES })]).stream();
  const response = await post(app, CHAT, "", { body, duplex: "half" } as RequestInit);
  assertEquals(response.status, 200);
});

Deno.test("a body that breaks off is 400", async () => {
  const app = entropic(fakeModel());
  const body = new ReadableStream({
    pull(controller) {
      controller.error(new Error("connection reset"));
    },
  });
  // With a declared length nothing reads the body before the JSON parser does.
  const headers = { "content-length": "50" };
  const response = await post(app, CHAT, "", { body, headers, duplex: "half" } as RequestInit);
  await expectError(app, response, { status: 400, code: "incomplete_body" });
});

Deno.test("compressed bodies and other content types are 415", async () => {
  const app = entropic(fakeModel());
  for (const encoding of ["gzip", "br", "deflate", "identity, gzip"]) {
    const headers = { "content-encoding": encoding };
    const response = await post(app, CHAT, { messages: MESSAGES }, { headers });
    await expectError(app, response, { status: 415, says: [encoding, "identity"] });
  }
  for (const type of ["text/plain", "application/x-www-form-urlencoded", ""]) {
    const headers = { "content-type": type };
    const response = await post(app, CHAT, { messages: MESSAGES }, { headers });
    await expectError(app, response, { status: 415, says: ["application/json"] });
  }
  const headers = { "content-type": "Application/JSON; charset=utf-8" };
  assertEquals((await post(app, CHAT, { messages: MESSAGES }, { headers })).status, 200);
});

Deno.test("an unknown route is 404, a wrong method 405 with Allow", async () => {
  const app = entropic(fakeModel());
  await expectError(app, await app.request("/v1/embeddings"), { status: 404, code: "not_found" });
  const cases = [["DELETE", CHAT, "POST"], ["GET", "/tokenize", "POST"], [
    "POST",
    "/health",
    "GET, HEAD",
  ]];
  for (const [method, path, allow] of cases as [string, string, string][]) {
    const response = await app.request(path, { method });
    assertEquals(response.headers.get("allow"), allow);
    await expectError(app, response, { status: 405, says: [method, allow] });
  }
  assertEquals((await app.request("/health", { method: "HEAD" })).status, 200);
});

Deno.test("a missing or wrong key is 401 where keys are configured, /health stays open", async () => {
  const app = entropic({ model: fakeModel(), apiKeys: ["first-key", "second-key"] });
  const headers = [
    {},
    { authorization: "Bearer wrong" },
    { authorization: "Bearer first-ke" },
    { authorization: "Bearer first-key2" },
    { authorization: "Basic Zmlyc3Qta2V5" },
    { authorization: "Bearer" },
    { authorization: "Bearer first-key second-key" },
  ];
  for (const wrong of headers) {
    for (const path of [CHAT, "/v1/completions", "/tokenize", "/detokenize"]) {
      const response = await post(app, path, "not even JSON", { headers: wrong });
      const { error } = await response.json();
      assertEquals([response.status, error.code], [401, "invalid_api_key"], path);
      assertEquals(response.headers.get("www-authenticate"), "Bearer");
    }
    for (const path of ["/metrics", "/v1/models", "/v1/models/fake"]) {
      assertEquals((await app.request(path, { headers: wrong })).status, 401, path);
    }
  }
  for (const key of ["first-key", "second-key"]) {
    const authorization = `Bearer ${key}`;
    const response = await post(app, CHAT, { messages: MESSAGES }, { headers: { authorization } });
    assertEquals(response.status, 200);
  }
  assertEquals((await app.request("/health")).status, 200);
  assertEquals((await app.request("/openapi.json")).status, 200);
});

Deno.test("CORS headers are on answers, streams and errors, and preflights need no key", async () => {
  const app = entropic({
    model: fakeModel(),
    apiKeys: ["key"],
    cors: { origin: "https://page.example" },
  });
  const origin = "https://page.example";
  const headers = { origin, authorization: "Bearer key" };
  const responses = [
    await post(app, CHAT, { messages: MESSAGES }, { headers }),
    await post(app, CHAT, { messages: MESSAGES, stream: true }, { headers }),
    await post(app, CHAT, { messages: [] }, { headers }),
    await post(app, CHAT, "{", { headers }),
    await post(app, CHAT, "{}", { headers: { origin } }),
    await app.request("/nowhere", { headers }),
    await app.request(CHAT, { headers }),
    await app.request("/health", { headers }),
  ];
  assertEquals(responses.map(({ status }) => status), [200, 200, 400, 400, 401, 404, 405, 200]);
  for (const response of responses) {
    assertEquals(response.headers.get("access-control-allow-origin"), origin);
    await response.text();
  }
  const preflight = await app.request(CHAT, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-headers": "authorization,content-type" },
  });
  assertEquals(preflight.status, 204);
  assertEquals(
    preflight.headers.get("access-control-allow-headers"),
    "authorization,content-type",
  );
  const other = await app.request("/health", { headers: { origin: "https://other.example" } });
  assertEquals(other.headers.get("access-control-allow-origin"), null);
});

Deno.test("CORS allows every origin by default and none when it is off", async () => {
  const headers = { origin: "https://page.example" };
  const allowed = await entropic(fakeModel()).request("/health", { headers });
  assertEquals(allowed.headers.get("access-control-allow-origin"), "*");
  const off = await entropic({ model: fakeModel(), cors: false }).request("/health", { headers });
  assertEquals(off.headers.get("access-control-allow-origin"), null);
});

Deno.test("an app that mounts the server keeps its own routes to itself", async () => {
  const app = new Hono();
  app.route("/", entropic({ model: fakeModel(), apiKeys: ["key"], bodyLimit: 5 }));
  app.post("/mine", async (c) => c.text(await c.req.text()));
  app.get("/tokenize", (c) => c.text("my page"));
  const mine = await app.request("/mine", { method: "POST", body: "more than five bytes" });
  assertEquals(await mine.text(), "more than five bytes");
  assertEquals(mine.headers.get("access-control-allow-origin"), null);
  const headers = { authorization: "Bearer key" };
  assertEquals((await app.request("/health", { headers })).status, 200);
  const large = await post(app as never, CHAT, { messages: MESSAGES }, { headers });
  assertEquals([large.status, (await large.json()).error.code], [413, "body_too_large"]);
  assertEquals((await app.request("/nowhere")).status, 404);
});

Deno.test("a server can be mounted below a path", async () => {
  const app = new Hono().route("/llm", entropic(fakeModel()));
  const response = await post(app as never, `/llm${CHAT}`, { messages: MESSAGES });
  assertEquals((await response.json()).choices[0].message.content, "Hello, world");
  assertEquals((await app.request(`/llm${CHAT}`)).status, 405);
});

Deno.test("/openapi.json describes every route from the schemas that validate", async () => {
  const document = await (await entropic(fakeModel()).request("/openapi.json")).json();
  assertEquals(document.openapi, "3.1.0");
  assertEquals(Object.keys(document.paths).sort(), [
    "/detokenize",
    "/health",
    "/metrics",
    "/tokenize",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/models",
    "/v1/models/{model}",
  ]);
  const { properties, required } = document.components.schemas.ChatCompletionRequest;
  assertEquals(required, ["messages"]);
  assertEquals(properties.top_logprobs.maximum, 20);
  assertEquals(properties.seed.type, ["integer", "null"]);
});

Deno.test("every answer carries a request id, the client's own where it sent one", async () => {
  const app = entropic(fakeModel());
  const own = await app.request("/health", { headers: { "x-request-id": "mine-1" } });
  assertEquals(own.headers.get("x-request-id"), "mine-1");
  const made = await post(app, CHAT, "{");
  assertEquals(made.headers.get("x-request-id")?.length, 36);
  await chat(app);
});
