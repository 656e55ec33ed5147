import { assertEquals } from "@std/assert";
import { progressBar } from "./progress_bar.ts";
import { TransferMeter, type TransferProgress } from "./transfer_meter.ts";

const half: TransferProgress = {
  name: "m.gguf",
  bytes: 50_000_000,
  total: 100_000_000,
  bytesPerSecond: 500_000,
  secondsLeft: 100,
  done: false,
};

function rendered(isTTY: boolean, reports: readonly TransferProgress[], columns = 100): string {
  let text = "";
  const render = progressBar({ isTTY, columns, write: (more) => text += more });
  reports.forEach(render);
  return text;
}

Deno.test("progressBar shows size, speed and time left on a terminal, within its width", () => {
  const line = rendered(true, [half]);
  assertEquals(
    line.trim(),
    "m.gguf [############------------] 50%, 50.0 MB of 100.0 MB, 0.5 MB/s, 1 min 40 s left",
  );
  assertEquals(line.length, 100);
  assertEquals(rendered(true, [half], 20).length, 20);
});

Deno.test("progressBar shortens its bar before its figures", () => {
  const figures = "50%, 50.0 MB of 100.0 MB, 0.5 MB/s, 1 min 40 s left";
  assertEquals(rendered(true, [half], 72).trim(), `m.gguf [#####-----] ${figures}`);
  assertEquals(rendered(true, [half], 62).trim(), `m.gguf ${figures}`);
});

Deno.test("progressBar ends its line with the transfer", () => {
  const text = rendered(true, [{ ...half, bytes: 100_000_000, done: true }]);
  assertEquals(text.endsWith("\n"), true);
});

Deno.test("progressBar writes a line every ten percent where there is no terminal", () => {
  const reports = Array.from({ length: 101 }, (_, i) => ({
    ...half,
    bytes: i * 1_000_000,
    done: i === 100,
  }));
  assertEquals(rendered(false, reports).split("\n").length, 12);
});

Deno.test("progressBar does without a total", () => {
  const report = { ...half, total: undefined, secondsLeft: undefined };
  assertEquals(rendered(false, [report]), "m.gguf 50.0 MB, 0.5 MB/s\n");
});

Deno.test("TransferMeter reports speed over the last seconds and the time left", () => {
  const reports: TransferProgress[] = [];
  let now = 0;
  const meter = new TransferMeter("m", (report) => reports.push(report), () => now);
  meter.start(1000, 11_000);
  for (let i = 1; i <= 100; i++) {
    now += 100;
    // First 10 bytes a report, then 100.
    meter.moveTo(i <= 50 ? 1000 + 10 * i : 1500 + 100 * (i - 50));
  }
  const last = reports.at(-1)!;
  assertEquals(last.bytes, 6500);
  assertEquals(last.bytesPerSecond, 1000);
  assertEquals(last.secondsLeft, 4.5);
});

Deno.test("TransferMeter reports at most ten times a second, and at the end", () => {
  const reports: TransferProgress[] = [];
  let now = 0;
  const meter = new TransferMeter("m", (report) => reports.push(report), () => now);
  meter.start(0, 1000);
  for (let i = 1; i <= 1000; i++) {
    now += 1;
    meter.moveTo(i);
  }
  meter.done();
  assertEquals(reports.length, 12);
  assertEquals(reports.at(-1)!.done, true);
});
