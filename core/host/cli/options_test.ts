import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { type Command, help, readArguments } from "./options.ts";

const COMMAND = {
  usage: "demo NAME",
  about: "Shows the options.",
  options: {
    port: { value: "N", help: "where to listen" },
    json: { help: "one document" },
  },
  operands: [0, 1],
} as const satisfies Command<string>;

Deno.test("readArguments reads values, flags and operands", () => {
  const given = readArguments(COMMAND, ["--port", "8123", "--json", "x"]);
  assertEquals(given.integer("port", 0, 65535), 8123);
  assertEquals(given.flag("json"), true);
  assertEquals(given.operands, ["x"]);
});

Deno.test("readArguments leaves out what was not given", () => {
  const given = readArguments(COMMAND, []);
  assertEquals(given.integer("port", 0, 65535), undefined);
  assertEquals(given.flag("json"), false);
});

Deno.test("readArguments refuses numbers outside their range and names the range", () => {
  for (const bad of ["", "x", "65536", "NaN", "1.5"]) {
    const given = readArguments(COMMAND, [`--port=${bad}`]);
    assertThrows(() => given.integer("port", 0, 65535), RangeError, "it takes");
  }
});

Deno.test("readArguments refuses unknown options and surplus operands", () => {
  assertThrows(() => readArguments(COMMAND, ["--prot", "1"]), TypeError);
  assertThrows(() => readArguments(COMMAND, ["a", "b"]), TypeError, "takes 0 to 1");
});

Deno.test("help lists each option with its value", () => {
  assertStringIncludes(help(COMMAND), "--port N  where to listen");
});
