/**
 * Where a JSON text goes wrong (RFC 8259). `JSON.parse` says whether; only some engines say where.
 */

/** White space, then one token or nothing. */
const TOKEN =
  /[ \t\n\r]*("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[[\]{}:,])?/y;

/** What may come next: a value, a key, or what follows one. */
type State = "value" | "value or ]" | "key" | "key or }" | ":" | ", or end";

/**
 * Finds the first character at which the text stops being JSON, in UTF-16 units.
 *
 * @returns The text's length when it ends too early, `undefined` when it is JSON.
 */
export function jsonErrorPosition(text: string): number | undefined {
  const open: string[] = [];
  let state: State = "value";
  TOKEN.lastIndex = 0;
  for (;;) {
    const start = TOKEN.lastIndex;
    const [matched, token] = TOKEN.exec(text) ?? [""];
    if (token === undefined) {
      const position = start + matched.length;
      const complete = position === text.length && state === ", or end" && open.length === 0;
      return complete ? undefined : position;
    }
    const next = step(state, token, open);
    if (next === undefined) return TOKEN.lastIndex - token.length;
    state = next;
  }
}

/** @returns The state after the token, `undefined` where it may not stand. */
function step(state: State, token: string, open: string[]): State | undefined {
  const inside = open.at(-1);
  switch (state) {
    case "value or ]":
    case "value":
      if (token === "{") return open.push("{"), "key or }";
      if (token === "[") return open.push("["), "value or ]";
      if (token === "]" && state === "value or ]") return open.pop(), ", or end";
      return /^[\]}:,]/.test(token) ? undefined : ", or end";
    case "key or }":
    case "key":
      if (token === "}" && state === "key or }") return open.pop(), ", or end";
      return token.startsWith('"') ? ":" : undefined;
    case ":":
      return token === ":" ? "value" : undefined;
    case ", or end":
      if (token === "," && inside !== undefined) return inside === "{" ? "key" : "value";
      if (token === "}" && inside === "{") return open.pop(), ", or end";
      if (token === "]" && inside === "[") return open.pop(), ", or end";
      return undefined;
  }
}
