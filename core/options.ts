/** What the entry points of the package check of their options, before anything else. */

/** Every name of an interface, which the compiler keeps complete. */
export type Names<Options> = Readonly<Record<keyof Options, true>>;

/**
 * Refuses what is no object, and names that nothing reads: `max_tokens` for `maxTokens` would go
 * without effect, and `apiKey` for `apiKeys` would leave the door open.
 *
 * @param of Whose options they are, for the message.
 * @throws {TypeError} Says which name, and which there are.
 */
export function checkNames<Options>(of: string, given: unknown, names: Names<Options>): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`Cannot use ${show(given)} as options of ${of}: they are an object`);
  }
  const unknown = Object.entries(given).find(([name, value]) =>
    value !== undefined && !Object.hasOwn(names, name)
  );
  if (unknown !== undefined) {
    const known = Object.keys(names).join(", ");
    throw new TypeError(`Cannot use option "${unknown[0]}" of ${of}: there are ${known}`);
  }
}

/** A value in a message. */
export function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
