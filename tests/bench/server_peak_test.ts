import { assertEquals, assertThrows } from "@std/assert";
import { peakBytes, prompts } from "./server_peak.ts";

Deno.test("peakBytes reads the high-water mark of a status file", () => {
  const status = "Name:\tdeno\nVmPeak:\t  999 kB\nVmHWM:\t  308704 kB\nVmRSS:\t  1 kB\n";
  assertEquals(peakBytes(status), 308704 * 1024);
  assertThrows(() => peakBytes("Name:\tdeno\n"), SyntaxError, "no VmHWM");
});

Deno.test("prompts differ from their first token on", () => {
  const all = prompts({ requests: 4, promptTokens: 30, maxTokens: 1 });
  assertEquals(all.map(({ length }) => length), [30, 30, 30, 30]);
  assertEquals(new Set(all.map(([first]) => first)).size, 4);
});
