/** What a request body must be before its schema sees it: small, plain, and JSON. */
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { ApiError } from "./api_error.ts";
import { jsonErrorPosition } from "./json_position.ts";

/** Refuses bodies over the limit, by their declared length or, in chunks, by what arrives. */
export function limitBody(maxSize: number): MiddlewareHandler {
  return bodyLimit({
    maxSize,
    onError() {
      throw new ApiError(413, `Cannot read the body: allowed are at most ${maxSize} bytes`, {
        code: "body_too_large",
      });
    },
  });
}

/** Refuses compressed bodies, which could inflate without limit, and those that are not JSON. */
export const jsonBody: MiddlewareHandler = async function jsonBody(c, next) {
  const encoding = c.req.header("content-encoding") ?? "identity";
  if (encoding !== "identity") {
    throw new ApiError(
      415,
      `Cannot read the body: current content-encoding is ${encoding}; allowed is identity`,
      { code: "unsupported_content_encoding" },
    );
  }
  const type = c.req.header("content-type");
  if (type?.split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw new ApiError(
      415,
      `Cannot read the body: current content-type is ${type ?? "missing"}; ` +
        "allowed is application/json",
      { code: "unsupported_content_type" },
    );
  }
  // Hono keeps the text, so the schema's validator parses it without reading the body again.
  const text = await c.req.text().catch((cause) => {
    throw new ApiError(400, "Cannot read the body: it broke off", { code: "incomplete_body" }, {
      cause,
    });
  });
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new ApiError(400, describe(text), { code: "invalid_json" }, { cause });
  }
  await next();
};

function describe(text: string): string {
  if (text === "") return "Cannot parse the body: it is empty; allowed is a JSON object";
  const position = jsonErrorPosition(text) ?? text.length;
  const before = text.slice(0, position).split("\n");
  const column = (before.at(-1)?.length ?? 0) + 1;
  const found = position < text.length
    ? `unexpected ${JSON.stringify(String.fromCodePoint(text.codePointAt(position) ?? 0))}`
    : "unexpected end";
  return `Cannot parse the body as JSON: ${found} at position ${position} ` +
    `(line ${before.length}, column ${column})`;
}
