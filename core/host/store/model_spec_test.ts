import { assert, assertEquals, assertThrows } from "@std/assert";
import { cacheFolder, type ModelSpec, parseModelSpec, splitFiles, stem } from "./model_spec.ts";

Deno.test("parseModelSpec reads each kind", () => {
  assertEquals(parseModelSpec("smollm2").kind, "known");
  assertEquals(parseModelSpec("hf:owner/repo/file.gguf"), {
    kind: "hf",
    repository: "owner/repo",
    revision: "main",
    file: "file.gguf",
  });
  assertEquals(parseModelSpec("hf:owner/re.po@abc123/sub/a-b.gguf"), {
    kind: "hf",
    repository: "owner/re.po",
    revision: "abc123",
    file: "sub/a-b.gguf",
  });
  assertEquals(parseModelSpec("pip:package"), { kind: "pip", name: "package", version: undefined });
  assertEquals(parseModelSpec("pip:a.b-c==1.0+x"), {
    kind: "pip",
    name: "a.b-c",
    version: "1.0+x",
  });
  assertEquals(parseModelSpec("https://host/m.gguf?x=1").kind, "url");
  assertEquals(parseModelSpec("http://localhost:8000/m.gguf").kind, "url");
  assertEquals(parseModelSpec("./smollm2"), { kind: "path", path: "./smollm2" });
  assertEquals(parseModelSpec("C:\\models\\m.gguf").kind, "path");
});

Deno.test("parseModelSpec refuses what is malformed, and says what is allowed", () => {
  const malformed: [string, string][] = [
    ["", "smollm2, a path, an https URL, hf:owner/repo/file.gguf or pip:package"],
    ["hf:owner/file.gguf", "it takes hf:owner/repo[@revision]/file.gguf"],
    ["hf:owner/repo/../../x.gguf", "it takes hf:"],
    ["hf:owner/repo/file.bin", "it takes hf:"],
    ["pip:", "it takes pip:package"],
    ["pip:-r", "it takes pip:package"],
    ["pip:a b", "it takes pip:package"],
    ["pip:package>=1", "it takes pip:package"],
    ["pip:package @ https://evil/x.whl", "it takes pip:package"],
    ["https://host/", "it takes a URL whose path ends in .gguf"],
    ["https://", "it takes a URL"],
    ["http://host/m.gguf", "it takes https, not http"],
  ];
  for (const [text, allowed] of malformed) {
    assertThrows(() => parseModelSpec(text), TypeError, allowed);
  }
});

Deno.test("cacheFolder keeps different models apart and stays below the cache", () => {
  const specs = [
    "smollm2",
    "pip:smollm2",
    "pip:smollm2==1",
    "hf:a/b/c.gguf",
    "hf:a/b@v2/c.gguf",
    "https://a/b/c.gguf",
    "https://a/b/c.gguf?v=2",
    "https://a/..%2f..%2f..%2fetc/c.gguf",
    "https://a:81/b/c.gguf",
  ];
  const folders = specs.map((spec) =>
    cacheFolder(parseModelSpec(spec) as Exclude<ModelSpec, { kind: "path" }>)
  );
  assertEquals(new Set(folders.map((folder) => folder.join("/"))).size, specs.length);
  for (const segment of folders.flat()) assert(/^[\w.@=+!-]+$/.test(segment) && segment !== "..");
});

Deno.test("splitFiles lists all parts of a split model, and a file that is none alone", () => {
  assertEquals(splitFiles("m.gguf"), ["m.gguf"]);
  assertEquals(splitFiles("a/m-00002-of-00003.gguf"), [
    "a/m-00001-of-00003.gguf",
    "a/m-00002-of-00003.gguf",
    "a/m-00003-of-00003.gguf",
  ]);
});

Deno.test("stem drops the extension and the part", () => {
  assertEquals(stem("m-00002-of-00003.gguf"), "m");
  assertEquals(stem("SmolLM2.Q4_1.gguf"), "SmolLM2.Q4_1");
});
