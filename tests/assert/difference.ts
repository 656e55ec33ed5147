/** The difference of two values, line by line. */
import { inspect } from "node:util";
import { show } from "./failure.ts";

/** Lines of `actual` (+) and `expected` (-), common ones once: their longest common subsequence. */
export function difference(actual: unknown, expected: unknown): string {
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
