/**
 * Runs in the page: takes what a test file registers with `Deno.test`, and runs it test by test when
 * the harness asks. Stands in for what tests and `@std/assert`, the project's own file, want of Node.
 */

interface Context {
  step(name: string, fn: Body): Promise<boolean>;
}
type Body = (context: Context) => void | Promise<void>;
interface Definition {
  readonly name: string;
  readonly ignore?: boolean;
  readonly fn: Body;
}

export interface Registered {
  readonly name: string;
  readonly ignore: boolean;
}

const tests: Definition[] = [];

/** All forms of `Deno.test`: options and name may come in one object, apart, or not at all. */
function register(...args: readonly (string | Body | Partial<Definition>)[]): void {
  const parts = args.map((arg) =>
    typeof arg === "string" ? { name: arg } : typeof arg === "function" ? { fn: arg } : arg
  );
  tests.push(Object.assign({}, ...parts));
}

/** Imports a bundled test file and tells which tests it has. */
export async function collect(url: string): Promise<Registered[]> {
  Object.assign(globalThis, { Deno: { test: register } });
  await import(url);
  return tests.map(({ name, ignore = false }) => ({ name, ignore }));
}

/** Runs a test; what went wrong, or `undefined`. */
export async function runTest(index: number): Promise<string | undefined> {
  const context: Context = {
    async step(_, fn) {
      await fn(context);
      return true;
    },
  };
  try {
    await tests[index]?.fn(context);
    return undefined;
  } catch (error) {
    const { message, stack = "" } = error as Error;
    return stack.includes(message) ? stack : `${message}\n${stack}`;
  }
}

/** Of `node:process`: a page has no environment. */
export default { env: {} };

/** Of `node:util`. */
export const inspect = (value: unknown): string =>
  JSON.stringify(value, (_, item) => {
    if (typeof item === "bigint") return `${item}n`;
    return ArrayBuffer.isView(item) ? Array.from(item as Uint8Array) : item;
  }, 2) ?? String(value);
