/**
 * Builders for request fields. Each takes the phrase that completes "allowed is …", which every
 * refusal of the field then carries. `null` means the default everywhere, as at OpenAI.
 */
import { z } from "@hono/zod-openapi";
import { UNSUPPORTED } from "../validation.ts";

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
