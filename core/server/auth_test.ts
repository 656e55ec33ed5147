import { assertThrows } from "@std/assert";
import { fakeModel } from "../../tests/support/fake_engine.ts";
import { entropic } from "./app.ts";
import { requireKey } from "./auth.ts";

Deno.test("requireKey refuses keys that no client could send", () => {
  assertThrows(() => requireKey([]), TypeError, "it is empty");
  for (const key of ["", "two words", "käse", "a=b", "line\nbreak"]) {
    assertThrows(() => requireKey(["fine", key]), TypeError, "Cannot use apiKeys");
  }
});

Deno.test("entropic refuses options out of range", () => {
  const model = fakeModel();
  for (const name of ["bodyLimit", "maxChoices"]) {
    assertThrows(() => entropic({ model, [name]: 0 }), RangeError, `Cannot use ${name}`);
  }
  assertThrows(() => entropic({ model, keepAliveSeconds: -1 }), RangeError, "keepAliveSeconds");
  assertThrows(() => entropic({ model, keepAliveSeconds: NaN }), RangeError, "NaN");
});
