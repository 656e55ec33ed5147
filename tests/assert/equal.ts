/** Deep equality, as `@std/assert` has it. */

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
export const constructorOf = (value: object): unknown => value.constructor ?? Object;

export const ownKeys = (value: object): (string | symbol)[] =>
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
