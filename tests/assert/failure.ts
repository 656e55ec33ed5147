/** What a failed assertion throws, and how it shows values. */
import { inspect } from "node:util";

/** A failed assertion. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export const show = (value: unknown): string =>
  inspect(value, { depth: 12, sorted: true, maxArrayLength: 200, maxStringLength: 10_000 });

/** What the caller had to say, behind a colon. */
export const suffix = (message?: string): string => message === undefined ? "" : `: ${message}`;
