import { assert, assertEquals, assertThrows } from "@std/assert";
import { normals, randomNumbers } from "../../../tests/support/random.ts";
import { type Calibration, decodeCalibration, encodeCalibration } from "./calibration.ts";

const SHAPE = { layers: 30, kvHeads: 3, headSize: 64 };
const MODEL = "ab".repeat(32);

/** Of the shape and size of SmolLM2's. */
function calibration(): Calibration {
  const random = randomNumbers(3);
  const rows = SHAPE.layers * SHAPE.kvHeads * 32;
  return {
    model: MODEL,
    mass: [{ length: 1024, mass: 0.9 }, { length: 2048, mass: 0.95 }],
    bound: 0.02,
    sketch: {
      dimensions: 32,
      keyMap: normals(rows * SHAPE.headSize, 0.5, random),
      keyOffset: normals(rows, 4, random),
      queryMap: normals(rows * SHAPE.headSize, 0.1, random),
    },
  };
}

Deno.test("decodeCalibration reads what encodeCalibration wrote, in under a megabyte", () => {
  const written = calibration();
  const text = encodeCalibration(written);
  assert(text.length < 2 ** 20, `${text.length} characters`);
  const { sketch, ...rest } = decodeCalibration(text, MODEL, SHAPE);
  const { sketch: from, ...restFrom } = written;
  assertEquals(rest, restFrom);
  assertEquals(sketch.dimensions, 32);
  assertEquals(sketch.keyOffset, from.keyOffset);
  for (const map of ["keyMap", "queryMap"] as const) {
    const largest = Math.max(...sketch[map].subarray(0, 1000).map(Math.abs));
    assert(sketch[map].every((value, i) => Math.abs(value - from[map][i]!) < 1e-4 * largest));
  }
});

Deno.test("decodeCalibration takes one whose shares were not measured", () => {
  const { bound: _, ...unmeasured } = { ...calibration(), mass: [] };
  const read = decodeCalibration(encodeCalibration(unmeasured), MODEL, SHAPE);
  assertEquals(read.mass, []);
  assertEquals("bound" in read, false);
});

Deno.test("decodeCalibration refuses another model's, another shape's and what is none", () => {
  const text = encodeCalibration(calibration());
  const changed = (change: object) => JSON.stringify({ ...JSON.parse(text), ...change });
  assertThrows(
    () => decodeCalibration(text, "cd".repeat(32), SHAPE),
    RangeError,
    "it is for model abababababab, this one is cdcdcdcdcdcd",
  );
  const refused = (given: string, why: string, shape = SHAPE) =>
    assertThrows(() => decodeCalibration(given, MODEL, shape), SyntaxError, why);
  refused(text, "expected are", { ...SHAPE, layers: 31 });
  refused(text, "expected are", { ...SHAPE, headSize: 128 });
  refused(text.slice(0, -1), "");
  refused("null", "it is no object");
  refused(changed({ version: 0 }), "version is 0, readable is 1");
  refused(changed({ mass: [{ length: 1, mass: 2 }] }), "mass is no list");
  refused(changed({ mass: "all" }), "mass is no list");
  const descending = [{ length: 2048, mass: 0.9 }, { length: 1024, mass: 0.8 }];
  refused(changed({ mass: descending }), "ascending");
  for (const bound of [0, -1, 1e-9, "1"]) refused(changed({ bound }), `bound is ${bound}`);
  refused(text.replace('"bound":0.02', '"bound":1e999'), "bound is Infinity");
  refused(changed({ dimensions: 12 }), "dimensions are 12");
  refused(changed({ dimensions: 40 }), "expected are");
  refused(changed({ keyMap: "" }), "a map is missing");
  refused(changed({ keyOffset: 1 }), "keyOffset is missing");
});
