/** Every failure as OpenAI's clients expect it: `{"error":{"message","type","param","code"}}`. */
import { HTTPException } from "hono/http-exception";
import { BackendError, OverloadedError, RequestError } from "../errors.ts";

/** What goes over the wire. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export interface ApiErrorDetail {
  readonly type?: string;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A failure with its HTTP status. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    detail: ApiErrorDetail = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.status = status;
    this.type = detail.type ?? (status < 500 ? "invalid_request_error" : "server_error");
    this.param = detail.param ?? null;
    this.code = detail.code ?? null;
    this.headers = detail.headers ?? {};
  }

  toBody(): ErrorBody {
    const { message, type, param, code } = this;
    return { error: { message, type, param, code } };
  }

  toResponse(): Response {
    return Response.json(this.toBody(), { status: this.status, headers: this.headers });
  }
}

/** 503: a later try may succeed. `retryAfter` in seconds. */
export function unavailable(message: string, code: string, retryAfter?: number): ApiError {
  return new ApiError(503, message, {
    type: "service_unavailable_error",
    code,
    headers: retryAfter === undefined ? {} : { "retry-after": String(Math.ceil(retryAfter)) },
  });
}

/** Finds the HTTP answer for anything that was thrown. Unknown errors keep their text to the log. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof RequestError) {
    const { param, code } = error;
    return new ApiError(error.status, error.message, { param, code }, { cause: error });
  }
  if (error instanceof OverloadedError) {
    return unavailable(error.message, "overloaded", error.retryAfter);
  }
  if (error instanceof BackendError) {
    return new ApiError(500, error.message, { code: "backend_failed" }, { cause: error });
  }
  if (error instanceof HTTPException) {
    return new ApiError(error.status, error.message, {}, { cause: error });
  }
  const message = "Cannot complete the request: the server failed";
  return new ApiError(500, message, { code: "internal_error" }, { cause: error });
}
