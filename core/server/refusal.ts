/** One wording for every refused value: which field, its current value, and what is allowed. */
import { RequestError } from "../errors.ts";

/** Longest piece of a client's value that a message repeats, in UTF-16 units. */
export const SHOWN = 60;

/** Values for a message: short, one line, and shallow however deep the value is. */
export function showValue(value: unknown): string {
  if (typeof value === "string") {
    return JSON.stringify(value.length > SHOWN ? `${value.slice(0, SHOWN)}…` : value);
  }
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : "an array";
  if (value !== null && typeof value === "object") return "an object";
  return String(value);
}

/** `["messages", 0, "content"]` as `messages[0].content`. */
export function showPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (shown, key) =>
      typeof key === "number"
        ? `${shown}[${key}]`
        : shown
        ? `${shown}.${String(key)}`
        : String(key),
    "",
  );
}

/** @param allowed Completes "allowed is …", for example `a number from 0 to 2`. */
export function refusal(param: string, value: unknown, allowed: string): RequestError {
  const state = value === undefined ? "it is missing" : `current value is ${showValue(value)}`;
  return new RequestError(`Cannot use ${param}: ${state}; allowed is ${allowed}`, {
    param,
    code: value === undefined ? "missing_value" : "invalid_value",
  });
}

/** The request names something that this server does not do. */
export function unsupported(param: string, instead: string): RequestError {
  return new RequestError(`Cannot use ${param}: it is not supported; ${instead}`, {
    param,
    code: "unsupported_parameter",
  });
}
