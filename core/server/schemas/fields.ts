/**
 * Builders for request fields. Each takes the phrase that completes "allowed is …", which every
 * refusal of the field then carries. `null` means the default everywhere, as at OpenAI.
 */
import { z } from "@hono/zod-openapi";
import { UNSUPPORTED } from "../validation.ts";

const MAX_TOKEN_ID = 2 ** 32 - 1;

/** A finite number in [minimum, maximum]. */
export function number(minimum: number, maximum: number, allowed: string) {
  return z.number({ error: allowed })
    .min(minimum, { error: allowed })
    .max(maximum, { error: allowed });
}

/** An integer in [minimum, maximum], both at most 2^53 - 1 in size. */
export function integer(minimum: number, maximum: number, allowed: string) {
  return z.int({ error: allowed })
    .min(minimum, { error: allowed })
    .max(maximum, { error: allowed });
}

/**
 * An array of at most `maximum` elements. A longer one is refused before zod reads it: zod gathers
 * an issue for every bad element, and a million of them take seconds and overflow its stack.
 */
export function atMost<Elements extends z.ZodArray>(
  maximum: number,
  elements: Elements,
  allowed: string,
) {
  return z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= maximum) return value;
    context.addIssue({ code: "custom", message: allowed });
    return z.NEVER;
  }, elements.max(maximum, { error: allowed }));
}

/** Ids of tokens, checked up to the first bad one and without a schema each: there may be millions. */
export function tokenIds(allowed: string) {
  const id = z.custom<number>().openapi({ type: "integer", minimum: 0, maximum: MAX_TOKEN_ID });
  return z.array(id, { error: allowed }).superRefine((ids, context) => {
    const index = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id > MAX_TOKEN_ID);
    // In a union, `continue` would have it pass for the kind of array that was meant.
    const outcome = { message: allowed, continue: false };
    if (index >= 0) context.addIssue({ code: "custom", path: [index], ...outcome });
  });
}

export function boolean() {
  return z.boolean({ error: "true or false" });
}

export function string(allowed = "a string") {
  return z.string({ error: allowed });
}

/** A field that would change the answer's meaning: refused unless it says what happens anyway. */
export function unsupported(
  description: string,
  isNeutral: (value: unknown) => boolean,
  instead: string,
) {
  return z.unknown()
    .refine((value) => value === undefined || value === null || isNeutral(value), {
      error: UNSUPPORTED + instead,
    })
    .openapi({ description: `Not supported. ${description}`, deprecated: true })
    .optional();
}

/** For `unsupported`: the field is present and says nothing. */
export function isEmpty(value: unknown): boolean {
  return value === false || value === "" ||
    (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}
