/**
 * Decodes under whatever runtime runs it and prints tokens a second; the second of two runs, for the
 * runtime compiles during the first: `decode_process.ts MODEL TOKENS`
 */
import process from "node:process";
import { OwnBackend } from "../own_backend.ts";

const [model = "", tokens = ""] = process.argv.slice(2);
const steps = Number(tokens);
const own = await OwnBackend.open({ model, threads: 1, batch: 1, contextLength: steps + 1 });
await own.decode(0, steps);
console.log(1000 / await own.decode(0, steps));
await own.dispose();
