/** Command-line options: one table a command, read by `node:util` and printed as its help. */
import process from "node:process";
import { parseArgs } from "node:util";

/** An option: how its value is written in the help, or nothing for a flag. */
export interface Option {
  readonly value?: string;
  readonly help: string;
}

export interface Command<Name extends string> {
  /** As typed after `deno task`, with its operands: `generate "prompt"`. */
  readonly usage: string;
  readonly about: string;
  readonly options: Readonly<Record<Name, Option>>;
  /** Fewest and most operands. */
  readonly operands: readonly [number, number];
}

/** What was given: values and flags by option name, and the operands. */
export interface Arguments<Name extends string> {
  readonly text: (name: Name) => string | undefined;
  readonly flag: (name: Name) => boolean;
  /** @throws {RangeError} The value is no number in `[min, max]`. */
  readonly number: (name: Name, min: number, max: number) => number | undefined;
  /** @throws {RangeError} The value is no whole number in `[min, max]`. */
  readonly integer: (name: Name, min: number, max: number) => number | undefined;
  readonly operands: readonly string[];
}

/**
 * Reads a command line.
 *
 * @throws {TypeError} An unknown option, a missing value, or too few or many operands.
 */
export function readArguments<Name extends string>(
  command: Command<Name>,
  args: readonly string[],
): Arguments<Name> {
  const options: Record<string, { type: "string" | "boolean" }> = {};
  for (const [name, option] of Object.entries<Option>(command.options)) {
    options[name] = { type: option.value === undefined ? "boolean" : "string" };
  }
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  const [fewest, most] = command.operands;
  if (positionals.length < fewest || positionals.length > most) {
    const allowed = fewest === most ? `${fewest}` : `${fewest} to ${most}`;
    throw new TypeError(
      `Cannot take ${positionals.length} operands: ${command.usage} takes ${allowed}`,
    );
  }
  const text = (name: Name) => values[name] as string | undefined;
  const number = (name: Name, min: number, max: number) => {
    const given = text(name);
    if (given === undefined) return undefined;
    const value = given.trim() === "" ? NaN : Number(given);
    if (!(value >= min && value <= max)) {
      throw new RangeError(`Cannot use --${name} "${given}": it takes ${range(min, max)}`);
    }
    return value;
  };
  return {
    text,
    flag: (name) => values[name] === true,
    number,
    integer(name, min, max) {
      const value = number(name, min, max);
      if (value !== undefined && !Number.isInteger(value)) {
        throw new RangeError(`Cannot use --${name} ${value}: it takes a whole number`);
      }
      return value;
    },
    operands: positionals,
  };
}

/** Runs a command: `--help` prints its help, a failure prints its message and exits with 1 or 2. */
export async function runCommand<Name extends string>(
  command: Command<Name>,
  run: (given: Arguments<Name>) => Promise<void>,
): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes("--help") || args.includes("-h")) return console.log(help(command));
  try {
    await run(readArguments(command, args));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    console.error(`error: ${message}`);
    const misused = error instanceof TypeError || error instanceof RangeError;
    if (misused) console.error(`\n${help(command)}`);
    process.exit(misused ? 2 : 1);
  }
}

/** The help text of a command. */
export function help(command: Command<string>): string {
  const rows = Object.entries(command.options)
    .map(([name, { value, help }]) => [`--${name}${value ? ` ${value}` : ""}`, help] as const);
  const width = Math.max(...rows.map(([left]) => left.length));
  const lines = rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
  return [`usage: ${command.usage} [options]`, command.about, "", ...lines].join("\n");
}

function range(min: number, max: number): string {
  if (max === Infinity) return min === -Infinity ? "a number" : `a number from ${min} on`;
  if (max === Number.MAX_VALUE) return `a finite number from ${min} on`;
  return `a number from ${min} to ${max}`;
}
