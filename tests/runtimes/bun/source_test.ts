/** Bun runs the sources, in this thread and in a Worker. */
import test from "node:test";
import * as library from "../../../mod.ts";
import { checkClients } from "../../http/openai_client.ts";
import { runtimeCases } from "../cases.js";

runtimeCases(library, { variant: "relaxed", worker: true, gpuPackage: "bun-webgpu" });

test("the openai client and the AI SDK talk to the server over a socket", () =>
  checkClients((_name, check) => check()));
