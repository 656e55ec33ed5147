/** What `entropic()` takes. */
import type { cors } from "hono/cors";
import type { AccessLogger } from "./exchange.ts";
import type { ModelSource } from "./model_slot.ts";
import { checkNames, type Names } from "../options.ts";

export type CorsOptions = NonNullable<Parameters<typeof cors>[0]>;

export interface EntropicOptions {
  readonly model: ModelSource;
  /** Keys that clients must send; left out, everybody may ask. /health stays open to all. */
  readonly apiKeys?: readonly string[];
  /** Hono's CORS options, or `false` for no CORS headers. Default: any origin. */
  readonly cors?: CorsOptions | false;
  /** Most bytes of a request body. Default 4 MiB. */
  readonly bodyLimit?: number;
  /** Most choices of one request, over all its prompts. Default 16. */
  readonly maxChoices?: number;
  /** A stream sends a comment after this many seconds without a token; 0 never. Default 5. */
  readonly keepAliveSeconds?: number;
  /** Called once a request, at the end of its answer. Left out, nothing is logged. */
  readonly logger?: AccessLogger;
}

const OPTIONS: Names<EntropicOptions> = {
  model: true,
  apiKeys: true,
  cors: true,
  bodyLimit: true,
  maxChoices: true,
  keepAliveSeconds: true,
  logger: true,
};

/** The options with every default filled in. */
export type Settings = Required<Omit<EntropicOptions, "apiKeys" | "logger">>;

/**
 * @throws {TypeError} There is no such option.
 * @throws {RangeError} An option is out of range.
 */
export function withDefaults(options: EntropicOptions): Settings {
  checkNames("entropic", options, OPTIONS);
  return {
    model: options.model,
    cors: options.cors ?? { origin: "*" },
    bodyLimit: atLeast("bodyLimit", options.bodyLimit ?? 4 * 1024 * 1024, 1),
    maxChoices: atLeast("maxChoices", options.maxChoices ?? 16, 1),
    keepAliveSeconds: atLeast("keepAliveSeconds", options.keepAliveSeconds ?? 5, 0),
  };
}

function atLeast(name: string, value: number, least: number): number {
  if (value >= least) return value;
  throw new RangeError(
    `Cannot use ${name}: current value is ${value}; allowed is ${least} or more`,
  );
}

/** Tells `entropic(model)` from `entropic(options)`, whose `model` may have been forgotten. */
export function isOptions(argument: ModelSource | EntropicOptions): argument is EntropicOptions {
  if (typeof argument !== "object" || argument === null) return false;
  return Object.keys(argument).some((name) => Object.hasOwn(OPTIONS, name));
}
