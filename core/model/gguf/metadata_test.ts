import { assertEquals, assertThrows } from "@std/assert";
import { ModelError } from "../../errors.ts";
import { PackedStrings } from "../packed_strings.ts";
import { GgufMetadata } from "./metadata.ts";
import type { GgufValue } from "./values.ts";

const metadata = new GgufMetadata(
  "m.gguf",
  new Map<string, GgufValue>([
    ["text", { type: "string", value: "hello" }],
    ["flag", { type: "bool", value: false }],
    ["int", { type: "int32", value: -1 }],
    ["small", { type: "uint8", value: 7 }],
    ["large", { type: "uint64", value: 2n ** 53n }],
    ["safe", { type: "int64", value: 2n ** 53n - 1n }],
    ["half", { type: "float32", value: 0.5 }],
    ["nan", { type: "float64", value: NaN }],
    ["names", { type: "array", elementType: "string", elements: PackedStrings.from(["a", "b"]) }],
    ["types", { type: "array", elementType: "int32", elements: Int32Array.of(1, -3) }],
    ["longs", { type: "array", elementType: "int64", elements: BigInt64Array.of(1n) }],
    ["scores", { type: "array", elementType: "float32", elements: Float32Array.of(1.5) }],
  ]),
);

Deno.test("GgufMetadata gives values of the type asked for", () => {
  assertEquals(metadata.string("text"), "hello");
  assertEquals(metadata.bool("flag"), false);
  assertEquals(metadata.uint("small"), 7);
  assertEquals(metadata.uint("safe"), 2 ** 53 - 1);
  assertEquals(metadata.float("half"), 0.5);
  assertEquals([...metadata.strings("names")], ["a", "b"]);
  assertEquals(metadata.ints("types"), Int32Array.of(1, -3));
  assertEquals(metadata.floats("scores"), Float32Array.of(1.5));
});

Deno.test("GgufMetadata answers a missing key with the fallback, also undefined", () => {
  assertEquals(metadata.uint("none", 3), 3);
  assertEquals(metadata.string("none", undefined), undefined);
  assertEquals(metadata.strings("none", []), []);
});

Deno.test("GgufMetadata refuses a missing key without fallback, naming it", () => {
  const error = assertThrows(() => metadata.uint("none"), ModelError, "none is missing");
  assertEquals(error.subject, "none");
});

Deno.test("GgufMetadata refuses a value of another type, also with a fallback", () => {
  const wrong: [() => unknown, string][] = [
    [() => metadata.string("flag", ""), "must be a string, current value is bool false"],
    [() => metadata.bool("text", true), 'must be a boolean, current value is the string "hello"'],
    [() => metadata.uint("int", 0), "current value is int32 -1"],
    [() => metadata.uint("large", 0), "current value is uint64 9007199254740992"],
    [() => metadata.uint("half", 0), "must be an integer"],
    [() => metadata.uint("flag", 0), "must be an integer"],
    [() => metadata.float("small", 0), "must be a finite floating-point number"],
    [() => metadata.float("nan", 0), "current value is float64 NaN"],
    [() => metadata.strings("types", []), "current value is an array of 2 int32"],
    [() => metadata.ints("longs", []), "must be an array of integers"],
    [() => metadata.floats("types", undefined), "must be an array of floating-point numbers"],
  ];
  for (const [call, problem] of wrong) assertThrows(call, ModelError, problem);
});
