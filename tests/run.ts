/**
 * `deno task test [STAGE…]`: every check of the project, one line a stage, quiet on success. Ends
 * with the line `N passed, N failed`. With CI=true nothing may be skipped.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { type Context, type Outcome, STAGES } from "./run/stages.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

if (import.meta.main) {
  const wanted = Deno.args;
  const unknown = wanted.filter((name) => !STAGES.some((stage) => stage.name === name));
  if (unknown.length > 0) {
    const names = STAGES.map(({ name }) => name).join(", ");
    console.error(`Cannot run stage: current value is ${unknown.join(", ")}, allowed are ${names}`);
    Deno.exit(2);
  }
  const scratch = mkdtempSync(`${tmpdir()}/entropic-test-`);
  try {
    const failed = await runStages(wanted, {
      root,
      scratch,
      strict: Deno.env.get("CI") === "true",
      versions: readVersions(),
      env: Deno.stdout.isTerminal() ? {} : { NO_COLOR: "1" },
    });
    Deno.exitCode = failed === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Runs the stages in order, whatever fails, and returns the number of failures. */
async function runStages(wanted: readonly string[], context: Context): Promise<number> {
  let [passed, failed] = [0, 0];
  const skipped: string[] = [];
  for (const { name, run } of STAGES) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const start = performance.now();
    const outcome = strictly(await run(context), context.strict);
    const seconds = (performance.now() - start) / 1000;
    if (outcome.failed > 0) console.log(outcome.output);
    console.log(line(name, outcome, seconds));
    passed += outcome.passed;
    failed += outcome.failed;
    skipped.push(...outcome.skipped.map((reason) => `skipped in ${name}: ${reason}`));
  }
  for (const reason of skipped) console.log(reason);
  console.log(`${passed} passed, ${failed} failed`);
  return failed;
}

/** Under CI a skip is a failure. */
function strictly(outcome: Outcome, strict: boolean): Outcome {
  if (!strict || outcome.skipped.length === 0) return outcome;
  const reasons = outcome.skipped.map((reason) => `Cannot skip with CI=true: ${reason}`);
  return {
    ...outcome,
    failed: outcome.failed + outcome.skipped.length,
    output: [outcome.output, ...reasons].join("\n"),
  };
}

function line(name: string, { passed, failed, skipped }: Outcome, seconds: number): string {
  const counts = [`${passed} passed`];
  if (failed > 0) counts.push(`${failed} failed`);
  if (skipped.length > 0) counts.push("some skipped");
  return `${name.padEnd(6)} ${counts.join(", ").padEnd(28)} ${seconds.toFixed(1).padStart(6)} s`;
}

/** The pinned versions of `.ci/versions`. */
function readVersions(): Record<string, string> {
  const text = readFileSync(`${root}.ci/versions`, "utf8");
  return Object.fromEntries(
    [...text.matchAll(/^([A-Z_]+)=(.+)$/gm)].map(([, key = "", value = ""]) => [key, value]),
  );
}
