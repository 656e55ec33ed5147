/**
 * The assertion vocabulary of `@std/assert`: the same names, the same semantics. The import map
 * points `@std/assert` here because that registry is out of reach of the build machines; whoever
 * can reach it changes one line. Runs under Deno, Bun and Node.
 */
import { difference } from "./assert/difference.ts";
import { constructorOf, equal, ownKeys } from "./assert/equal.ts";
import { AssertionError, show, suffix } from "./assert/failure.ts";

export { assertIsError, assertRejects, assertThrows } from "./assert/errors.ts";
export { AssertionError, equal };

// deno-lint-ignore no-explicit-any -- the shape of every class, as in @std/assert
type AnyConstructor = abstract new (...args: any[]) => any;

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
