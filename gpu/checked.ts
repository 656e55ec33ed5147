/** Asks a device to create something, and turns its complaints into errors. */
import { BackendError } from "../core/errors.ts";

/**
 * Runs `create` and waits until the device has checked what it created. For one caller at a time:
 * error scopes are a stack of the whole device, and these stay open as long as `create` takes.
 *
 * @throws {BackendError} The device refused, or its memory is exhausted.
 */
export async function checked<T>(
  gpu: GPUDevice,
  what: string,
  create: () => T | Promise<T>,
): Promise<T> {
  openScopes(gpu);
  const made = started(create);
  await Promise.allSettled([made]);
  return await accepted(what, made, closeScopes(gpu));
}

/**
 * As `checked`, for callers that overlap: the scopes only see what `create` asks for before it first
 * waits.
 *
 * @throws {BackendError} The device refused, or its memory is exhausted.
 */
export async function checkedAtOnce<T>(
  gpu: GPUDevice,
  what: string,
  create: () => T | Promise<T>,
): Promise<T> {
  openScopes(gpu);
  const made = started(create);
  return await accepted(what, made, closeScopes(gpu));
}

/** A promise for what `create` gives or throws; runs it in this tick. */
const started = <T>(create: () => T | Promise<T>): Promise<T> =>
  new Promise((resolve) => resolve(create()));

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
