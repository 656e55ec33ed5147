/** Node runs the bundle; Node 20 has SIMD, but no relaxed SIMD. */
import process from "node:process";
import * as library from "../../../dist/mod.js";
import { runtimeCases } from "../cases.js";

const [major = 0] = process.versions.node.split(".").map(Number);
runtimeCases(library, { variant: major < 22 ? "simd128" : "relaxed", worker: false });
