/** API keys, as `Authorization: Bearer KEY`. */
import type { MiddlewareHandler } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { ApiError } from "./api_error.ts";

/** RFC 6750, section 2.1. */
const KEY = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Lets requests with one of the keys through; Hono compares in constant time.
 *
 * @throws {TypeError} No keys, or one that no Authorization header can carry.
 */
export function requireKey(keys: readonly string[]): MiddlewareHandler {
  if (keys.length === 0) throw new TypeError("Cannot use apiKeys: it is empty, so none would do");
  if (!keys.every((key) => KEY.test(key))) {
    throw new TypeError(
      "Cannot use apiKeys: allowed are letters, digits and ._~+/- with = at the end",
    );
  }
  const refuse = (reason: string) => (): never => {
    throw new ApiError(
      401,
      `Cannot accept the API key: ${reason}; allowed is Authorization: Bearer KEY`,
      {
        type: "authentication_error",
        code: "invalid_api_key",
        headers: { "www-authenticate": "Bearer" },
      },
    );
  };
  return bearerAuth({
    token: [...keys],
    noAuthenticationHeader: { message: refuse("it is missing") },
    invalidAuthenticationHeader: { message: refuse("the header is malformed") },
    invalidToken: { message: refuse("it is wrong") },
  });
}
