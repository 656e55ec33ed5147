/** The real model of the tests: SmolLM2-135M-Instruct, where this machine has it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { cacheDirectory } from "../../core/host/store/cache_directory.ts";
import { DEFAULT_MODEL, KNOWN_MODELS } from "../../core/host/store/known_models.ts";

/** Its path: what ENTROPIC_TEST_MODEL names, else the cached default model. */
export const REAL_MODEL: string | undefined = process.env.ENTROPIC_TEST_MODEL ?? cachedModel();

function cachedModel(): string | undefined {
  const known = KNOWN_MODELS.find(({ alias }) => alias === DEFAULT_MODEL);
  const path = join(cacheDirectory(), known?.alias ?? "", known?.file ?? "");
  return known !== undefined && existsSync(path) ? path : undefined;
}
