/** Assertions about what is thrown. */
import { AssertionError, show, suffix } from "./failure.ts";

// deno-lint-ignore no-explicit-any -- the constructor of any error
type ErrorConstructor<E extends Error> = abstract new (...args: any[]) => E;

/** Throws unless the value is an error of that class whose message contains the given part. */
export function assertIsError<E extends Error = Error>(
  error: unknown,
  ErrorClass?: ErrorConstructor<E>,
  messageIncludes?: string,
  message?: string,
): asserts error is E {
  if (!(error instanceof Error)) {
    throw new AssertionError(
      `Expected "error" to be an Error object${suffix(message)}, but was ${show(error)}`,
    );
  }
  if (ErrorClass !== undefined && !(error instanceof ErrorClass)) {
    throw new AssertionError(
      `Expected error to be instance of "${ErrorClass.name}", but was ` +
        `"${error.constructor.name}" (${error.message})${suffix(message)}`,
      { cause: error },
    );
  }
  if (messageIncludes !== undefined && !error.message.includes(messageIncludes)) {
    throw new AssertionError(
      `Expected error message to include ${show(messageIncludes)}, but got ` +
        `${show(error.message)}${suffix(message)}`,
      { cause: error },
    );
  }
}

/** Throws unless `fn` throws, and returns what it threw. */
export function assertThrows(fn: () => unknown, message?: string): unknown;
/** Throws unless `fn` throws an error of that class and message, and returns it. */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass: ErrorConstructor<E>,
  messageIncludes?: string,
  message?: string,
): E;
export function assertThrows<E extends Error>(
  fn: () => unknown,
  classOrMessage?: ErrorConstructor<E> | string,
  messageIncludes?: string,
  message?: string,
): unknown {
  let thrown: unknown;
  try {
    fn();
  } catch (error) {
    thrown = error;
    if (typeof classOrMessage === "function") {
      assertIsError(error, classOrMessage, messageIncludes, message);
    }
    return thrown;
  }
  const text = typeof classOrMessage === "string" ? classOrMessage : message;
  throw new AssertionError(`Expected function to throw${suffix(text)}`);
}

/** Rejects unless `fn` returns a promise that rejects, and resolves with its reason. */
export function assertRejects(fn: () => PromiseLike<unknown>, message?: string): Promise<unknown>;
/** Rejects unless `fn` rejects with an error of that class and message, and resolves with it. */
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: ErrorConstructor<E>,
  messageIncludes?: string,
  message?: string,
): Promise<E>;
export async function assertRejects<E extends Error>(
  fn: () => PromiseLike<unknown>,
  classOrMessage?: ErrorConstructor<E> | string,
  messageIncludes?: string,
  message?: string,
): Promise<unknown> {
  const text = typeof classOrMessage === "string" ? classOrMessage : message;
  let promise: PromiseLike<unknown>;
  try {
    promise = fn();
  } catch (error) {
    throw new AssertionError(`Function throws when expected to reject${suffix(text)}`, {
      cause: error,
    });
  }
  try {
    await promise;
  } catch (error) {
    if (typeof classOrMessage === "function") {
      assertIsError(error, classOrMessage, messageIncludes, message);
    }
    return error;
  }
  throw new AssertionError(`Expected function to reject${suffix(text)}`);
}
