/** zod's findings as one `RequestError`. Schemas put what they allow into the issue's message. */
import type { z } from "@hono/zod-openapi";
import { RequestError } from "../errors.ts";
import { refusal, SHOWN, showPath, showValue, unsupported } from "./refusal.ts";

/** Marks a schema's message as one about a field that has no meaning here; the advice follows. */
export const UNSUPPORTED = "unsupported: ";

/** The first issue, since one at a time is what OpenAI reports. */
export function toRequestError(error: z.ZodError, body: unknown): RequestError {
  const issue = error.issues[0];
  if (issue === undefined) return new RequestError("Cannot use the request body");
  if (issue.path.length === 0) {
    return new RequestError(
      `Cannot use the request body: current value is ${showValue(body)}; allowed is a JSON object`,
    );
  }
  if (issue.code === "unrecognized_keys") return unknown(issue.path, issue.keys, issue.message);
  const param = showPath(issue.path);
  if (issue.message.startsWith(UNSUPPORTED)) {
    return unsupported(param, issue.message.slice(UNSUPPORTED.length));
  }
  return refusal(param, valueAt(body, issue.path), issue.message);
}

/** @param allowed Names of the fields that there are. */
function unknown(
  path: readonly PropertyKey[],
  [key = ""]: readonly string[],
  allowed: string,
): RequestError {
  const param = showPath([...path, key.slice(0, SHOWN)]);
  return new RequestError(
    `Cannot use ${param}: there is no such field; allowed are ${allowed}`,
    { param, code: "unknown_parameter" },
  );
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      value !== null && typeof value === "object" ? Reflect.get(value, key) : undefined,
    body,
  );
}
