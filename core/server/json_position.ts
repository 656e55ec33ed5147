/**
 * Where a JSON text goes wrong (RFC 8259). `JSON.parse` says whether; only some engines say where.
 */

/** What may come next: a value, a key, or what follows one. */
type State = "value" | "value or ]" | "key" | "key or }" | ":" | ", or end";

/** A bracket, colon or comma as itself, or the kind of a longer token. */
type Token = "{" | "}" | "[" | "]" | ":" | "," | "string" | "scalar";

const SPACE = /[ \t\n\r]*/y;
const PUNCTUATION = /[[\]{}:,]/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Finds the first character at which the text stops being JSON, in UTF-16 units.
 *
 * @returns The text's length when it ends too early, `undefined` when it is JSON.
 */
export function jsonErrorPosition(text: string): number | undefined {
  const open: string[] = [];
  let state: State = "value";
  let position = matchEnd(SPACE, text, 0) ?? 0;
  while (position < text.length) {
    const end: number = tokenEnd(text, position);
    if (end <= position) return -end;
    const next = step(state, kind(text.charAt(position)), open);
    if (next === undefined) return position;
    state = next;
    position = matchEnd(SPACE, text, end) ?? end;
  }
  return state === ", or end" && open.length === 0 ? undefined : text.length;
}

/** @returns The end of the token at `start` or, where it is none, minus the offending position. */
function tokenEnd(text: string, start: number): number {
  if (text.charAt(start) === '"') return stringEnd(text, start);
  return matchEnd(PUNCTUATION, text, start) ?? matchEnd(SCALAR, text, start) ?? -start;
}

function stringEnd(text: string, start: number): number {
  let position = start + 1;
  while (position < text.length) {
    const character = text.charAt(position);
    if (character === '"') return position + 1;
    if (character < " ") return -position;
    const next = character === "\\" ? matchEnd(ESCAPE, text, position) : position + 1;
    if (next === undefined) return -position;
    position = next;
  }
  return -text.length;
}

function matchEnd(pattern: RegExp, text: string, start: number): number | undefined {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function kind(first: string): Token {
  switch (first) {
    case "{":
    case "}":
    case "[":
    case "]":
    case ":":
    case ",":
      return first;
    case '"':
      return "string";
    default:
      return "scalar";
  }
}

/** @returns The state after the token, `undefined` where it may not stand. */
function step(state: State, token: Token, open: string[]): State | undefined {
  switch (state) {
    case "value or ]":
    case "value":
      if (token === "{" || token === "[") {
        open.push(token);
        return token === "{" ? "key or }" : "value or ]";
      }
      if (token === "string" || token === "scalar") return ", or end";
      return token === "]" && state === "value or ]" ? close(open) : undefined;
    case "key or }":
    case "key":
      if (token === "string") return ":";
      return token === "}" && state === "key or }" ? close(open) : undefined;
    case ":":
      return token === ":" ? "value" : undefined;
    case ", or end":
      return afterValue(token, open);
  }
}

function afterValue(token: Token, open: string[]): State | undefined {
  const inside = open.at(-1);
  if (token === "," && inside !== undefined) return inside === "{" ? "key" : "value";
  const matches = (token === "}" && inside === "{") || (token === "]" && inside === "[");
  return matches ? close(open) : undefined;
}

function close(open: string[]): State {
  open.pop();
  return ", or end";
}
