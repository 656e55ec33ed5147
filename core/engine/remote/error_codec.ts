/** Errors across a port: structured clone keeps neither their class nor their fields. */
import { BackendError, ModelError, OverloadedError, RequestError } from "../../errors.ts";

export type EncodedError =
  | {
    readonly kind: "request";
    readonly message: string;
    readonly param: string | null;
    readonly code: string | null;
    readonly status: number;
  }
  | { readonly kind: "overloaded"; readonly message: string; readonly retryAfter: number }
  | { readonly kind: "model"; readonly message: string; readonly subject: string }
  | { readonly kind: "backend"; readonly message: string; readonly fatal: boolean };

export function encodeError(error: unknown): EncodedError {
  if (error instanceof RequestError) {
    const { message, param, code, status } = error;
    return { kind: "request", message, param, code, status };
  }
  if (error instanceof OverloadedError) {
    return { kind: "overloaded", message: error.message, retryAfter: error.retryAfter };
  }
  if (error instanceof ModelError) {
    return { kind: "model", message: error.message, subject: error.subject };
  }
  if (error instanceof BackendError) {
    return { kind: "backend", message: error.message, fatal: error.fatal };
  }
  return { kind: "backend", message: String(error), fatal: false };
}

export function decodeError(encoded: EncodedError): Error {
  switch (encoded.kind) {
    case "request": {
      const { message, param, code, status } = encoded;
      return new RequestError(message, {
        status,
        ...(param === null ? {} : { param }),
        ...(code === null ? {} : { code }),
      });
    }
    case "overloaded":
      return new OverloadedError(encoded.message, encoded.retryAfter);
    case "model":
      return new ModelError(encoded.subject, encoded.message);
    case "backend":
      return new BackendError(encoded.message, { fatal: encoded.fatal });
  }
}
