import { assertEquals } from "@std/assert";
import { countJunit } from "./junit.ts";

Deno.test("countJunit counts a report of deno test", () => {
  const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="4" failures="1" errors="0" time="0.008">
    <testsuite name="./x_test.ts" tests="4" disabled="1" errors="0" failures="1">
        <testcase name="a -> b" classname="./x_test.ts" time="0.000" line="1" col="6">
        </testcase>
        <testcase name="b" classname="./x_test.ts" time="0.000" line="2" col="6">
            <skipped/>
        </testcase>
        <testcase name="c" classname="./x_test.ts" time="0.002" line="3" col="6">
            <failure message="boom">Error: &lt;testcase&gt;</failure>
        </testcase>
        <testcase name="d" classname="./x_test.ts" time="0.000" line="3" col="39">
        </testcase>
    </testsuite>
</testsuites>`;
  assertEquals(countJunit(report), { passed: 2, failed: 1, skipped: 1 });
});

Deno.test("countJunit counts a report of bun test", () => {
  const report = `<testsuite name="x.test.ts" tests="3">
    <testcase name="a / b" classname="" time="0.000044" file="x.test.ts" assertions="0" />
    <testcase name="b" time="0"><skipped /></testcase>
    <testcase name="c" time="0"><failure type="Error" message="x">Error: x&#10;</failure></testcase>
  </testsuite>`;
  assertEquals(countJunit(report), { passed: 1, failed: 1, skipped: 1 });
});

Deno.test("countJunit counts a report of node --test", () => {
  const report = `<testsuites>
	<testcase name="a" time="0.001029" classname="test"/>
	<testcase name="b" time="0.000107" classname="test">
		<skipped type="skipped" message="why"/>
	</testcase>
	<testcase name="c" time="0.000218" classname="test" failure="x">
		<failure type="testCodeFailure" message="x">[Error] { code: 'ERR_TEST_FAILURE' }</failure>
	</testcase>
	<!-- tests 3 -->
</testsuites>`;
  assertEquals(countJunit(report), { passed: 1, failed: 1, skipped: 1 });
});
