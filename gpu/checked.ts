/** Asks a device to create something, and turns its complaints into errors. */
import { BackendError } from "../core/errors.ts";

/**
 * What the device checks. Error scopes are a stack of the whole device: `throughout` keeps them open
 * as long as `create` takes, so for one caller at a time; `at once` sees what `create` asks for before
 * it first waits, so callers may overlap.
 */
export type Watch = "throughout" | "at once";

/**
 * Runs `create` and waits until the device has checked what it created.
 *
 * @throws {BackendError} The device refused, or its memory is exhausted.
 */
export async function checked<T>(
  gpu: GPUDevice,
  what: string,
  create: () => T | Promise<T>,
  watch: Watch = "throughout",
): Promise<T> {
  openScopes(gpu);
  // Runs it in this tick.
  const made = new Promise<T>((resolve) => resolve(create()));
  if (watch === "throughout") await Promise.allSettled([made]);
  return await accepted(what, made, closeScopes(gpu));
}

function openScopes(gpu: GPUDevice): void {
  gpu.pushErrorScope("validation");
  gpu.pushErrorScope("out-of-memory");
}

/** The first error that the scopes caught, if any. */
async function closeScopes(gpu: GPUDevice): Promise<GPUError | undefined> {
  const errors = await Promise.all([gpu.popErrorScope(), gpu.popErrorScope()]);
  return errors.find((error) => error !== null) ?? undefined;
}

async function accepted<T>(
  what: string,
  made: Promise<T>,
  caught: Promise<GPUError | undefined>,
): Promise<T> {
  const [result, scopes] = await Promise.allSettled([made, caught]);
  if (scopes.status === "rejected") throw scopes.reason;
  const error = scopes.value;
  if (result.status === "fulfilled" && error === undefined) return result.value;
  // What the device says of an error tells more than what it made the call throw.
  const cause = error ?? (result.status === "rejected" ? result.reason : undefined);
  if (cause === error || cause instanceof DOMException) {
    throw new BackendError(`Cannot ${what}: ${messageOf(cause)}`, { fatal: true }, { cause });
  }
  throw cause;
}

export function messageOf(cause: unknown): string {
  const message = (cause as { readonly message?: unknown } | undefined)?.message;
  return typeof message === "string" ? message : String(cause);
}
