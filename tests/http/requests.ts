/** Ways to talk to an app without a socket. */
import { assertEquals } from "@std/assert";
import type { entropic } from "../../core/server/app.ts";

export type App = ReturnType<typeof entropic>;

/** Whatever JSON came; tests look into it freely. */
// deno-lint-ignore no-explicit-any
export type Json = any;

export const CHAT = "/v1/chat/completions";
export const COMPLETIONS = "/v1/completions";
export const MESSAGES = [{ role: "user", content: "Hi" }];

/** Posts an object as JSON, or a text as it is. */
export async function post(
  app: { request: App["request"] },
  path: string,
  body: unknown,
  init: RequestInit = {},
): Promise<Response> {
  return await app.request(path, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
    headers: { "content-type": "application/json", ...init.headers as Record<string, string> },
  });
}

/** Posts and expects 200 with JSON. */
export async function postJson(app: App, path: string, body: unknown): Promise<Json> {
  const response = await post(app, path, body);
  const json = await response.json();
  assertEquals(response.status, 200, JSON.stringify(json));
  return json;
}

/** A chat with the given fields, whole. */
export function chat(app: App, fields: Record<string, unknown> = {}): Promise<Json> {
  return postJson(app, CHAT, { messages: MESSAGES, ...fields });
}

/** A completion of "Hi" with the given fields, whole. */
export function complete(app: App, fields: Record<string, unknown> = {}): Promise<Json> {
  return postJson(app, COMPLETIONS, { prompt: "Hi", ...fields });
}

/** Posts with `stream` and reads the events to the end, which has to be `[DONE]`. */
export async function stream(app: App, path: string, fields: object): Promise<Json[]> {
  const response = await post(app, path, { ...fields, stream: true });
  const text = await response.text();
  assertEquals(response.status, 200, text);
  return events(text);
}

/** The events of a stream without comments and without the `[DONE]` that must end them. */
export function events(text: string): Json[] {
  const blocks = text.split("\n\n").filter((block) => block !== "" && !block.startsWith(":"));
  assertEquals(blocks.pop(), "data: [DONE]");
  return blocks.map((block) => {
    assertEquals(block.slice(0, 6), "data: ");
    return JSON.parse(block.slice(6));
  });
}

/** What a chat stream said, by choice. */
export function chatTexts(chunks: readonly Json[]): string[] {
  const texts: string[] = [];
  for (const { choices } of chunks) {
    for (const { index, delta } of choices) {
      texts[index] = (texts[index] ?? "") + (delta.content ?? "");
    }
  }
  return texts;
}

/** Expects an error in OpenAI's shape, then that the next normal request succeeds. */
export async function expectError(
  app: App,
  response: Response,
  expected: { status: number; param?: string | null; code?: string; says?: readonly string[] },
): Promise<Json> {
  const body = await response.json();
  assertEquals(response.status, expected.status, JSON.stringify(body));
  assertEquals(Object.keys(body.error).sort(), ["code", "message", "param", "type"]);
  if (expected.param !== undefined) assertEquals(body.error.param, expected.param);
  if (expected.code !== undefined) assertEquals(body.error.code, expected.code);
  for (const part of expected.says ?? []) {
    assertEquals(body.error.message.includes(part), true, `${part} in ${body.error.message}`);
  }
  assertEquals((await chat(app)).object, "chat.completion");
  return body;
}
