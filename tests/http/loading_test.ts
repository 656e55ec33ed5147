import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, type Json, MESSAGES, post } from "./requests.ts";

const settle = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("while the model loads, /health and requests answer 503 with Retry-After", async () => {
  const loading = Promise.withResolvers<ReturnType<typeof fakeModel>>();
  const app = entropic(loading.promise);
  const health = await app.request("/health");
  assertEquals([health.status, (await health.json()).status], [503, "loading"]);
  assertEquals(health.headers.get("retry-after"), "2");
  const refused = await post(app, CHAT, { messages: MESSAGES, stream: true });
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "2"]);
  assertEquals((await refused.json()).error.code, "model_loading");
  assertEquals((await app.request("/v1/models")).status, 503);
  assertMatch(await (await app.request("/metrics")).text(), /^entropic_ready 0$/m);

  loading.resolve(fakeModel());
  await settle();
  const ready: Json = await (await app.request("/health")).json();
  assertEquals(ready.status, "ok");
  assertEquals((await post(app, CHAT, { messages: MESSAGES })).status, 200);
});

Deno.test("a model that cannot be loaded is told by /health with the reason", async () => {
  const app = entropic(Promise.reject(new Error("Cannot read model.gguf: no such file")));
  await settle();
  const health = await app.request("/health");
  const body = await health.json();
  assertEquals([health.status, body.status], [503, "failed"]);
  assertMatch(body.error.message, /Cannot read model\.gguf: no such file/);
  assertEquals(health.headers.get("retry-after"), null);
  const refused = await post(app, CHAT, { messages: MESSAGES });
  assertEquals([refused.status, (await refused.json()).error.code], [503, "model_failed"]);
});

Deno.test("a loader runs once, with the first request", async () => {
  let runs = 0;
  const app = entropic(() => {
    runs++;
    return Promise.resolve(fakeModel());
  });
  await settle();
  assertEquals(runs, 0);
  assertEquals((await app.request("/health")).status, 503);
  await settle();
  assertEquals((await app.request("/health")).status, 200);
  assertEquals(runs, 1);
});

Deno.test("a loader that throws at once is a failed load", async () => {
  const app = entropic(() => {
    throw new Error("no memory");
  });
  await app.request("/health");
  assertMatch((await (await app.request("/health")).json()).error.message, /no memory/);
});

Deno.test("/health tells model, backend and engine", async () => {
  const app = entropic({ model: fakeModel() });
  assertEquals(await (await app.request("/health")).json(), {
    status: "ok",
    model: "fake",
    backend: {
      kind: "scripted",
      variant: "fake",
      threads: 1,
      weight_bytes: 1000,
      kv_bytes: 2000,
      rebuilds: 1,
    },
    policy: "fcfs",
    attention: {
      policy: "mass",
      allowed: ["off", "mass", "paper"],
      least_mass: 0.5,
      least_blocks: 4,
      dense_below: 1024,
      divergence: 0.005,
      divergence_bound: 0.02,
      shadows: 3,
      held: [{ from: 1024, mass: 0.9, threshold: 0.001 }],
    },
    entropy_floor: 0,
    max_model_len: 512,
    engine: {
      waiting: 0,
      running: 0,
      preempted: 0,
      kv_blocks_free: 100,
      kv_blocks_total: 100,
    },
  });
});

Deno.test("what is no model is refused at once, or told by /health when it comes late", async () => {
  const make = (argument: unknown) => () => entropic(argument as ReturnType<typeof fakeModel>);
  for (const none of [null, undefined, 5, "smollm2", {}, { model: null }, { apiKeys: ["k"] }]) {
    assertThrows(make(none), TypeError, "as a model: it is what loadModel gives");
  }
  const app = make(Promise.resolve({}))();
  await settle();
  const body = await (await app.request("/health")).json();
  assertEquals(body.status, "failed");
  assertMatch(body.error.message, /as a model: it is what loadModel gives/);
});

Deno.test("an option that there is not is refused, lest a door stays open", () => {
  const options = { model: fakeModel(), apiKey: "secret" };
  assertThrows(
    () => entropic(options),
    TypeError,
    'option "apiKey" of entropic: there are model, ',
  );
});
