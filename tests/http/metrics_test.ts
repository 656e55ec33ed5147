import { assertEquals, assertMatch } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import type { AccessEntry } from "../../core/server/exchange.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, chat, MESSAGES, post, stream } from "./requests.ts";

Deno.test("/metrics counts requests by route and status, tokens, latencies and cache use", async () => {
  const app = entropic(fakeModel());
  await chat(app);
  await stream(app, CHAT, { messages: MESSAGES, n: 2 });
  await post(app, CHAT, {});
  await app.request("/nowhere");
  const response = await app.request("/metrics");
  assertEquals(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const page = await response.text();
  const value = (series: string) => {
    const line = page.split("\n").find((line) => line.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };
  const route = 'route="/v1/chat/completions"';
  assertEquals(value(`entropic_http_requests_total{${route},status="200"}`), 2);
  assertEquals(value(`entropic_http_requests_total{${route},status="400"}`), 1);
  assertEquals(value('entropic_http_requests_total{route="other",status="404"}'), 1);
  assertEquals(value(`entropic_http_request_duration_seconds_count{${route}}`), 3);
  assertEquals(value("entropic_time_to_first_token_seconds_count"), 3);
  assertEquals(value("entropic_inter_token_seconds_count"), 3 * 11);
  assertEquals(value("entropic_generated_tokens_total"), 36);
  assertEquals(value("entropic_prefix_cache_tokens_total"), 12);
  assertEquals(value("entropic_preemptions_total"), 2);
  assertEquals(value("entropic_backend_rebuilds_total"), 1);
  assertEquals(value("entropic_tau_nats_total"), 18);
  assertEquals(value('entropic_sequences{state="running"}'), 0);
  assertEquals(value('entropic_kv_blocks{state="cached"}'), 10);
  assertEquals(value("entropic_kv_usage_ratio"), 0);
  assertEquals(value('entropic_sequences_finished_total{reason="stop"}'), 3);
  assertEquals(value("entropic_ready"), 1);
  assertMatch(page, /^entropic_model_info\{model="fake",backend="scripted",.*\} 1$/m);
});

Deno.test("the access log has one line a request, streams at their end", async () => {
  const log: AccessEntry[] = [];
  const app = entropic({ model: fakeModel(), logger: (entry) => void log.push(entry) });
  const response = await post(app, CHAT, { messages: MESSAGES, stream: true }, {
    headers: { "x-request-id": "r1" },
  });
  assertEquals(log.length, 0);
  await response.text();
  await post(app, CHAT, "{");
  const [streamed, refused] = log;
  assertEquals(log.length, 2);
  const { time, milliseconds, ...rest } = streamed!;
  assertEquals(rest, {
    id: "r1",
    method: "POST",
    path: CHAT,
    status: 200,
    promptTokens: "?user\nHi?\n?assistant\n".length,
    completionTokens: 12,
  });
  assertEquals(new Date(time).toISOString(), time);
  assertEquals(milliseconds >= 0, true);
  assertEquals([refused!.status, typeof refused!.error], [400, "string"]);
});
