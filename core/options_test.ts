import { assertThrows } from "@std/assert";
import { checkNames, type Names } from "./options.ts";

interface Tea {
  readonly milk?: boolean;
  readonly sugar?: number;
}
const NAMES: Names<Tea> = { milk: true, sugar: true };

Deno.test("options may leave names out, and may say undefined", () => {
  checkNames("tea", {}, NAMES);
  checkNames("tea", { milk: true, sugar: undefined, lemon: undefined }, NAMES);
});

Deno.test("a name that nothing reads is refused, with those there are", () => {
  const refused = (given: unknown, message: string) =>
    assertThrows(() => checkNames("tea", given, NAMES), TypeError, message);
  refused({ milk: true, suger: 1 }, 'Cannot use option "suger" of tea: there are milk, sugar');
  refused({ toString: 1 }, 'Cannot use option "toString" of tea');
  for (const given of [null, undefined, 5, "milk", [], () => {}]) {
    refused(given, "as options of tea: they are an object");
  }
});
