import { assertEquals } from "@std/assert";
import { fillIn, markdown } from "./tables.ts";

Deno.test("markdown lines up the columns of all rows", () => {
  assertEquals(
    markdown([{ name: "a" }, { name: "longer", value: "2" }]),
    [
      "| name   | value |",
      "| ------ | ----- |",
      "| a      |       |",
      "| longer | 2     |",
    ].join("\n"),
  );
});

Deno.test("fillIn replaces the tables that it is given, again and again, and nothing else", () => {
  const page =
    "# T\n<!-- table one -->\nold\n<!-- end -->\ntext\n<!-- table two -->\n<!-- end -->\n";
  const once = fillIn(page, { one: "| a |" });
  assertEquals(
    once,
    "# T\n<!-- table one -->\n\n| a |\n\n<!-- end -->\ntext\n<!-- table two -->\n<!-- end -->\n",
  );
  assertEquals(fillIn(once, { one: "| a |" }), once);
});
