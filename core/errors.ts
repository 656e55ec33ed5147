/**
 * The errors that cross a boundary of the project. Each names what was wrong; where a caller can
 * act on it, a field says so. Programming mistakes stay plain `TypeError` and `RangeError`.
 */

/** A model file or its metadata cannot be used. `subject` is the metadata key, tensor or file. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly subject: string;

  constructor(subject: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.subject = subject;
  }
}

/** A request that can never be served as it stands: HTTP 4xx, in OpenAI's shape. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** The request field at fault, as the client spells it, or `null` for the whole request. */
  readonly param: string | null;
  /** OpenAI's machine-readable code, for example `context_length_exceeded`. */
  readonly code: string | null;
  /** HTTP status, 400 to 499. */
  readonly status: number;

  constructor(
    message: string,
    detail: { param?: string; code?: string; status?: number } = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.param = detail.param ?? null;
    this.code = detail.code ?? null;
    this.status = detail.status ?? 400;
  }
}

/** The engine cannot take the request now, a later try may succeed: HTTP 503 with Retry-After. */
export class OverloadedError extends Error {
  override readonly name = "OverloadedError";
  /** Seconds after which a retry is worth it. */
  readonly retryAfter: number;

  constructor(message: string, retryAfter = 1, options?: ErrorOptions) {
    super(message, options);
    this.retryAfter = retryAfter;
  }
}

/** The backend failed: a trapped WASM instance, a lost device, a dead worker. */
export class BackendError extends Error {
  override readonly name = "BackendError";
  /** Whether the backend has to be rebuilt before it can be used again. */
  readonly fatal: boolean;

  constructor(message: string, detail: { fatal: boolean }, options?: ErrorOptions) {
    super(message, options);
    this.fatal = detail.fatal;
  }
}
