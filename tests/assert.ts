/**
 * The assertion vocabulary of `@std/assert`: the same names, the same semantics. The import map
 * points `@std/assert` here because that registry is out of reach of the build machines; whoever
 * can reach it changes one line. Runs under Deno, Bun and Node.
 */
import { inspect } from "node:util";

/** A failed assertion. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

// deno-lint-ignore no-explicit-any -- the shape of every class, as in @std/assert
type AnyConstructor = abstract new (...args: any[]) => any;
// deno-lint-ignore no-explicit-any -- the constructor of any error
type ErrorConstructor<E extends Error> = abstract new (...args: any[]) => E;

const show = (value: unknown): string =>
  inspect(value, { depth: 12, sorted: true, maxArrayLength: 200, maxStringLength: 10_000 });

const suffix = (message?: string): string => message === undefined ? "" : `: ${message}`;

/** Throws unless `condition` is truthy. */
export function assert(condition: unknown, message = ""): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Throws unless `condition` is falsy. */
export function assertFalse(condition: unknown, message = ""): asserts condition is false {
  if (condition) throw new AssertionError(message);
}

/** Throws always. */
export function fail(message?: string): never {
  throw new AssertionError(`Failed assertion${message === undefined ? "." : suffix(message)}`);
}

/** Throws always: marks what cannot be reached. */
export function unreachable(reason?: string): never {
  throw new AssertionError(`Unreachable${suffix(reason)}`);
}

/**
 * Deep equality: same value (NaN equals NaN, 0 equals -0), or same constructor with the same own
 * enumerable content. A key that holds `undefined` differs from one that is missing.
 */
export function equal(a: unknown, b: unknown): boolean {
  return compare(a, b, new Map());
}

function compare(a: unknown, b: unknown, seen: Map<unknown, unknown>): boolean {
  if (a === b || Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (constructorOf(a) !== constructorOf(b)) return false;
  if (a instanceof Date && b instanceof Date) return Object.is(a.getTime(), b.getTime());
  if (a instanceof RegExp || a instanceof URL) return String(a) === String(b);
  if (a instanceof WeakMap || a instanceof WeakSet || a instanceof WeakRef) return false;
  if (a instanceof ArrayBuffer && b instanceof ArrayBuffer) {
    return compare(new Uint8Array(a), new Uint8Array(b), seen);
  }
  if (isNumbers(a) && isNumbers(b)) {
    return a.length === b.length && a.every((x, at) => x === b[at] || Object.is(x, b[at]));
  }
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  if (a instanceof Error && b instanceof Error && (a.name !== b.name || a.message !== b.message)) {
    return false;
  }
  if (a instanceof Set && b instanceof Set) return compareSets(a, b, seen);
  if (a instanceof Map && b instanceof Map) return compareSets(new Set(a), new Set(b), seen);
  const keys = ownKeys(a);
  return keys.length === ownKeys(b).length &&
    keys.every((key) =>
      Object.hasOwn(b, key) && compare(Reflect.get(a, key), Reflect.get(b, key), seen)
    );
}

/** Typed arrays, which are too long to compare key by key. */
const isNumbers = (value: object): value is Float64Array =>
  ArrayBuffer.isView(value) && !(value instanceof DataView);

/** Objects without a prototype compare like plain ones. */
const constructorOf = (value: object): unknown => value.constructor ?? Object;

const ownKeys = (value: object): (string | symbol)[] =>
  Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));

function compareSets(a: Set<unknown>, b: Set<unknown>, seen: Map<unknown, unknown>): boolean {
  if (a.size !== b.size) return false;
  const rest = new Set(b);
  for (const item of a) {
    const match = rest.has(item)
      ? { item }
      : [...rest].map((item) => ({ item })).find((other) =>
        compare(item, other.item, new Map(seen))
      );
    if (match === undefined) return false;
    rest.delete(match.item);
  }
  return true;
}

/** Lines of `actual` (+) and `expected` (-), common ones once: their longest common subsequence. */
function difference(actual: unknown, expected: unknown): string {
  const render = (value: unknown) =>
    typeof value === "string" ? value.split("\n") : inspect(value, {
      depth: 12,
      sorted: true,
      compact: false,
      maxArrayLength: 500,
      maxStringLength: 10_000,
    }).split("\n");
  const [a, b] = [render(actual), render(expected)];
  if (a.length === 1 && b.length === 1) {
    return `  actual:   ${show(actual)}\n  expected: ${show(expected)}`;
  }
  if (a.length * b.length > 4_000_000) {
    return `  actual:   ${show(actual)}\n  expected: ${show(expected)}`;
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j]
        ? at(i + 1, j + 1) + 1
        : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: string[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`    ${a[i++]}`);
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push(`+   ${a[i++]}`);
    } else lines.push(`-   ${b[j++]}`);
  }
  return elide(lines).join("\n");
}

/** Keeps three common lines around each change. */
function elide(lines: readonly string[]): string[] {
  const near = (at: number) => lines.slice(Math.max(0, at - 3), at + 4).some((l) => l[0] !== " ");
  return lines.flatMap((line, at) => near(at) ? [line] : at > 0 && near(at - 1) ? ["    …"] : []);
}

/** Throws unless both are deeply equal; the message shows the difference. */
export function assertEquals<T>(actual: T, expected: T, message?: string): void {
  if (equal(actual, expected)) return;
  throw new AssertionError(
    `Values are not equal${suffix(message)}\n  (+ actual, - expected)\n${
      difference(actual, expected)
    }`,
  );
}

/** Throws if both are deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, message?: string): void {
  if (!equal(actual, expected)) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} not to be: ${show(expected)}${suffix(message)}`,
  );
}

/** Throws unless both are the same value by `Object.is`. */
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  message?: string,
): asserts actual is T {
  if (Object.is(actual, expected)) return;
  const text = equal(actual, expected)
    ? `Values have the same structure but are not reference-equal\n  ${show(actual)}`
    : `Values are not strictly equal\n${difference(actual, expected)}`;
  throw new AssertionError(`${text}${suffix(message)}`);
}

/** Throws if both are the same value by `Object.is`. */
export function assertNotStrictEquals<T>(actual: T, expected: T, message?: string): void {
  if (!Object.is(actual, expected)) return;
  throw new AssertionError(
    `Expected "actual" not to be strictly equal to: ${show(expected)}${suffix(message)}`,
  );
}

/**
 * Throws unless both numbers are closer than `tolerance`, by default 1e-7 of the expected one's
 * size.
 */
export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance = Number.isFinite(expected) ? Math.abs(expected * 1e-7) : 1e-7,
  message?: string,
): void {
  if (Object.is(actual, expected)) return;
  const delta = Math.abs(expected - actual);
  if (delta <= tolerance) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to be close to ${show(expected)}: delta ${delta} is ` +
      `greater than ${tolerance}${suffix(message)}`,
  );
}

/** Throws if the value is `null` or `undefined`. */
export function assertExists<T>(
  actual: T,
  message?: string,
): asserts actual is NonNullable<T> {
  if (actual !== undefined && actual !== null) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to not be null or undefined${suffix(message)}`,
  );
}

/** Throws unless the value is an instance of the class. */
export function assertInstanceOf<T extends AnyConstructor>(
  actual: unknown,
  expectedType: T,
  message?: string,
): asserts actual is InstanceType<T> {
  if (actual instanceof expectedType) return;
  throw new AssertionError(
    `Expected object to be an instance of "${expectedType.name}" but was ${show(actual)}${
      suffix(message)
    }`,
  );
}

/** Throws if the value is an instance of the class. */
export function assertNotInstanceOf<A, T>(
  actual: A,
  // deno-lint-ignore no-explicit-any -- the shape of every class, as in @std/assert
  unexpectedType: abstract new (...args: any[]) => T,
  message?: string,
): asserts actual is Exclude<A, T> {
  if (!(actual instanceof unexpectedType)) return;
  throw new AssertionError(
    `Expected object to not be an instance of "${unexpectedType.name}"${suffix(message)}`,
  );
}

/** Throws unless `actual` contains `expected`. */
export function assertStringIncludes(actual: string, expected: string, message?: string): void {
  if (actual.includes(expected)) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to contain: ${show(expected)}${suffix(message)}`,
  );
}

/** Throws unless the text matches. */
export function assertMatch(actual: string, expected: RegExp, message?: string): void {
  if (expected.test(actual)) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to match: ${expected}${suffix(message)}`,
  );
}

/** Throws if the text matches. */
export function assertNotMatch(actual: string, expected: RegExp, message?: string): void {
  if (!expected.test(actual)) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to not match: ${expected}${suffix(message)}`,
  );
}

/** Throws unless each expected item deeply equals some item of `actual`. */
export function assertArrayIncludes<T>(
  actual: ArrayLike<T>,
  expected: ArrayLike<T>,
  message?: string,
): void {
  const items = Array.from(actual);
  const missing = Array.from(expected).filter((want) => !items.some((item) => equal(item, want)));
  if (missing.length === 0) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to include: ${show(expected)}${suffix(message)}\n` +
      `  missing: ${show(missing)}`,
  );
}

/** Throws unless `actual` holds everything that `expected` names, at any depth. */
export function assertObjectMatch(actual: object, expected: object, message?: string): void {
  assertEquals<unknown>(project(actual, expected), expected, message);
}

/** The part of `actual` that `pattern` names. */
function project(actual: unknown, pattern: unknown): unknown {
  if (!isPlain(actual) || !isPlain(pattern)) return actual;
  if (Array.isArray(pattern)) {
    if (!Array.isArray(actual)) return actual;
    return actual.slice(0, pattern.length).map((item, at) => project(item, pattern[at]));
  }
  const entries = ownKeys(pattern).filter((key) => key in actual).map((key) =>
    [key, project(Reflect.get(actual, key), Reflect.get(pattern, key))] as const
  );
  return Object.assign(Object.create(Object.getPrototypeOf(pattern)), Object.fromEntries(entries));
}

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null &&
  (Array.isArray(value) || constructorOf(value) === Object);

function assertOrder(
  holds: boolean,
  relation: string,
  actual: unknown,
  expected: unknown,
  message?: string,
) {
  if (holds) return;
  throw new AssertionError(
    `Expect ${show(actual)} ${relation} ${show(expected)}${suffix(message)}`,
  );
}

/** Throws unless `actual > expected`. */
export function assertGreater<T>(actual: T, expected: T, message?: string): void {
  assertOrder(actual > expected, ">", actual, expected, message);
}

/** Throws unless `actual >= expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void {
  assertOrder(actual >= expected, ">=", actual, expected, message);
}

/** Throws unless `actual < expected`. */
export function assertLess<T>(actual: T, expected: T, message?: string): void {
  assertOrder(actual < expected, "<", actual, expected, message);
}

/** Throws unless `actual <= expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void {
  assertOrder(actual <= expected, "<=", actual, expected, message);
}

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
