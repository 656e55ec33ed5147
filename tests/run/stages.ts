/**
 * The stages of `deno task test`, in order. A stage counts tests, or itself as one; it says what it
 * skipped and why. With `strict` (CI=true) whatever would be skipped fails.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { type CommandResult, run } from "./command.ts";
import { countJunit } from "./junit.ts";

export interface Context {
  /** The project's root; ends with a slash. */
  readonly root: string;
  /** Scratch folder, gone at the end. */
  readonly scratch: string;
  /** Whether nothing may be skipped. */
  readonly strict: boolean;
  /** Pinned versions, from `.ci/versions`. */
  readonly versions: Readonly<Record<string, string>>;
  /** Environment of the tests; the stage `model` adds the real model's path. */
  readonly env: Record<string, string>;
}

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  /** What was left out, each with its reason. */
  readonly skipped: readonly string[];
  /** What to print where something failed. */
  readonly output: string;
}

export interface Stage {
  readonly name: string;
  readonly run: (context: Context) => Promise<Outcome>;
}

const DENO = Deno.execPath();

/** Folders of `tests` that have a stage of their own. */
const APART = "--ignore=tests/runtimes,tests/browser";

export const STAGES: readonly Stage[] = [
  { name: "fmt", run: (context) => single(deno(context, ["fmt", "--check"])) },
  { name: "lint", run: (context) => single(deno(context, ["lint", "--quiet"])) },
  { name: "types", run: checkTypes },
  { name: "wasm", run: rebuildWasm },
  { name: "model", run: fetchModel },
  { name: "unit", run: (context) => denoTests(context, ["core", "wasm", "gpu"]) },
  { name: "cross", run: (context) => denoTests(context, ["tests", APART]) },
  { name: "browser", run: (context) => denoTests(context, ["tests/browser"]) },
  { name: "bun", run: bunTests },
  { name: "node", run: nodeTests },
];

function deno(context: Context, args: readonly string[]): Promise<CommandResult> {
  return run(DENO, args, { cwd: context.root, env: context.env });
}

/** A command that counts as one test. */
async function single(command: Promise<CommandResult>): Promise<Outcome> {
  const { ok, output } = await command;
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: [], output };
}

const skip = (reason: string): Outcome => ({
  passed: 0,
  failed: 0,
  skipped: [reason],
  output: "",
});

/** Checks all types; in CI also that `deno.lock` covers every import. */
function checkTypes(context: Context): Promise<Outcome> {
  const frozen = context.strict ? ["--frozen"] : [];
  return single(deno(context, ["check", "--quiet", ...frozen, "."]));
}

/** Rebuilds the WASM artifacts and compares them with the committed ones; needs Rust. */
async function rebuildWasm(context: Context): Promise<Outcome> {
  if (!context.strict) {
    return skip("rebuilding the WASM artifacts needs Rust; the committed ones are tested");
  }
  return await single(deno(context, ["run", "-A", "wasm/build.ts", "--check"]));
}

/** Makes the real model available to the tests, by the ordinary model command. */
async function fetchModel(context: Context): Promise<Outcome> {
  const given = context.env.ENTROPIC_TEST_MODEL ?? Deno.env.get("ENTROPIC_TEST_MODEL");
  if (given !== undefined) {
    if (existsSync(given)) return { passed: 1, failed: 0, skipped: [], output: "" };
    const output = `Cannot find the model of ENTROPIC_TEST_MODEL: current value is ${given}`;
    return { passed: 0, failed: 1, skipped: [], output };
  }
  const { ok, output } = await deno(context, [
    "run",
    "-A",
    "core/host/cli/model.ts",
    "smollm2",
    "--quiet",
  ]);
  const path = output.split("\n").at(-1) ?? "";
  if (ok && existsSync(path)) {
    context.env.ENTROPIC_TEST_MODEL = path;
    return { passed: 1, failed: 0, skipped: [], output };
  }
  if (context.strict) return { passed: 0, failed: 1, skipped: [], output };
  return skip(`tests on the real model: it could not be fetched (${output.split("\n")[0]})`);
}

function denoTests(context: Context, paths: readonly string[]): Promise<Outcome> {
  const present = paths.filter((path) => path.startsWith("-") || existsSync(context.root + path));
  return withReport(context, (report) =>
    deno(context, [
      ...["test", "-A", "--no-check", "--parallel", "--quiet", "--permit-no-files"],
      ...["--reporter=dot", `--junit-path=${report}`, ...present],
    ]));
}

async function bunTests(context: Context): Promise<Outcome> {
  const bun = await findBun(context);
  if (bun === undefined) return skip("tests under Bun: no bun on the PATH; npm install -g bun");
  const [command, ...prefix] = bun;
  const options = { cwd: context.root, env: await withTinyModel(context) };
  const install = await single(
    run(command, [...prefix, "install", "--frozen-lockfile"], options),
  );
  if (install.failed > 0) return install;
  return await withReport(context, (report) =>
    run(command, [
      ...[...prefix, "test", "--reporter=junit", `--reporter-outfile=${report}`],
      "./tests/runtimes/bun/",
    ], options));
}

/** How to start Bun: the one on the PATH; in CI the pinned one by way of npx, if there is none. */
async function findBun(context: Context): Promise<[string, ...string[]] | undefined> {
  if ((await run("bun", ["--version"])).ok) return ["bun"];
  return context.strict ? ["npx", "-y", `bun@${context.versions.BUN}`] : undefined;
}

/** Builds the bundle, then runs it under Node with what every Node 20 has. */
async function nodeTests(context: Context): Promise<Outcome> {
  if (!(await run("node", ["--version"])).ok) {
    return skip("tests under Node: no node on the PATH");
  }
  const build = await single(deno(context, ["task", "build"]));
  if (build.failed > 0) return build;
  const options = { cwd: context.root, env: await withTinyModel(context) };
  return await withReport(context, (report) =>
    run("node", [
      ...["--test", "--test-reporter=junit", `--test-reporter-destination=${report}`],
      ...["--test-reporter=spec", "--test-reporter-destination=stdout"],
      "tests/runtimes/node/",
    ], options));
}

/** The environment of the tests of other runtimes, which cannot make the tiny model themselves. */
async function withTinyModel(context: Context): Promise<Record<string, string>> {
  const path = `${context.scratch}/tiny.gguf`;
  if (!existsSync(path)) await deno(context, ["run", "-A", "tests/support/tiny_model.ts", path]);
  return { ...context.env, ENTROPIC_TINY_MODEL: path };
}

/** Runs a command that writes a JUnit report, and counts its tests. */
async function withReport(
  context: Context,
  command: (report: string) => Promise<CommandResult>,
): Promise<Outcome> {
  const report = `${context.scratch}/report.xml`;
  rmSync(report, { force: true });
  const { ok, output } = await command(report);
  const { passed, failed, skipped } = countJunit(
    existsSync(report) ? readFileSync(report, "utf8") : "",
  );
  return {
    passed,
    failed: !ok && failed === 0 ? 1 : failed,
    skipped: skipped === 0 ? [] : [`${skipped} tests that need what this machine lacks`],
    // The dots of Deno's reporter, each on a line of its own.
    output: output.replace(/^[.,!]\n/gm, ""),
  };
}
