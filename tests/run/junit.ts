/** Counts in the JUnit reports that `deno test`, `bun test` and `node --test` write. */

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Counts test cases by outcome. Steps of a test count as tests of their own, as Deno has it. */
export function countJunit(xml: string): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [, body = ""] of xml.matchAll(CASE)) {
    if (/<(failure|error)\b/.test(body)) counts.failed++;
    else if (/<skipped\b/.test(body)) counts.skipped++;
    else counts.passed++;
  }
  return counts;
}

/** A test case: `<testcase …/>`, or one with a body. Quoted attributes may contain a `>`. */
const CASE = /<testcase\b(?:[^>"]|"[^"]*")*?(?:\/>|>(.*?)<\/testcase>)/gs;
