/** Node runs the bundle; Node 20 has SIMD, but no relaxed SIMD. */
import process from "node:process";
import { runtimeCases } from "../cases.js";

// No literal: the bundle is not there when types are checked.
const library = await import(new URL("../../../dist/mod.js", import.meta.url).href);
const [major = 0] = process.versions.node.split(".").map(Number);
const variant = major < 22 ? "simd128" : "relaxed";
runtimeCases(library, { variant, worker: false, gpuPackage: "webgpu" });
