/**
 * Runs the ordinary pip client to download wheels. Only wheels: a source distribution would run its
 * own code. pip verifies them against the index and knows the user's indexes, proxies and cache.
 */
import { spawn } from "node:child_process";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import type { Environment } from "./cache_directory.ts";
import type { TransferMeter } from "./transfer_meter.ts";

/** Names under which Python is found, in order. */
const PYTHONS = process.platform === "win32" ? ["python", "py"] : ["python3", "python"];

/** Milliseconds between looks at what pip has written so far. */
const LOOK_EVERY = 200;

/** Units of the sizes that pip prints. */
const UNITS: Readonly<Record<string, number>> = { bytes: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

interface PipDownload {
  /** `name` or `name==version`. */
  readonly requirements: readonly string[];
  /** An empty or new folder; wheels and temporary files go below it. */
  readonly folder: string;
  readonly meter: TransferMeter;
  readonly signal: AbortSignal;
  /** For pip: its settings, proxies and PATH. */
  readonly environment: Environment;
}

/**
 * @returns Paths of the wheels, one a requirement, by name.
 * @throws {Error} No Python, no pip, or pip failed; the message ends with what pip said last.
 */
export async function pipDownload(request: PipDownload): Promise<string[]> {
  const temporary = join(request.folder, "tmp");
  const wheels = join(request.folder, "wheels");
  await mkdir(temporary, { recursive: true });
  const args = ["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"];
  const quiet = ["--disable-pip-version-check", "--progress-bar", "off", "--dest", wheels];
  await runPython([...args, ...quiet, "--", ...request.requirements], temporary, request);
  const bytes = await wheelBytes(wheels);
  request.meter.setTotal(bytes);
  request.meter.moveTo(bytes);
  request.meter.done();
  const names = await readdir(wheels);
  return names.filter((name) => name.endsWith(".whl")).sort().map((name) => join(wheels, name));
}

async function runPython(args: string[], temporary: string, request: PipDownload): Promise<void> {
  for (const python of PYTHONS) {
    try {
      return await runPip(python, args, temporary, request);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`no Python was found (tried ${PYTHONS.join(", ")})`);
}

function runPip(
  python: string,
  args: string[],
  temporary: string,
  { meter, signal, environment }: PipDownload,
): Promise<void> {
  const child = spawn(python, args, {
    env: { ...environment, TMPDIR: temporary, TEMP: temporary, TMP: temporary },
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  // pip announces each file with its size; what has come in is seen in its temporary folder.
  let announced = 0;
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    announced += announcedBytes(text);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  meter.start(0, undefined);
  const timer = setInterval(async () => {
    meter.setTotal(announced > 0 ? announced : undefined);
    meter.moveTo(await wheelBytes(join(temporary, "..")));
  }, LOOK_EVERY);
  return new Promise<void>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(lastWords(errors) || `pip ended with exit code ${code}`));
    });
  }).finally(() => clearInterval(timer));
}

/** The sizes in lines such as "Downloading NAME.whl (92.9 MB)" and "Using cached …". */
export function announcedBytes(text: string): number {
  const sizes = text.matchAll(
    /(?:Downloading|Using cached) \S+\.whl \(([\d.]+) (bytes|kB|MB|GB)\)/g,
  );
  return [...sizes].reduce(
    (sum, [, size, unit = ""]) => sum + Number(size) * (UNITS[unit] ?? 0),
    0,
  );
}

/** What pip gives as its reasons, in one line. */
function lastWords(errors: string): string {
  const lines = errors.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const reasons = lines.filter((line) => /^error/i.test(line));
  return (reasons.length > 0 ? reasons : lines).slice(-3).join("; ");
}

async function wheelBytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = names
    .filter((name) => name.endsWith(".whl"))
    .map((name) => stat(join(folder, name)).then(({ size }) => size, () => 0));
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
