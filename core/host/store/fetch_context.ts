/** What every way of fetching a model is given. */
import type { Environment } from "./cache_directory.ts";
import type { Staging } from "./staging.ts";
import type { ReportProgress } from "./transfer_meter.ts";

export interface FetchContext {
  /** Where files are prepared; the finished ones go to `staging.files`. */
  readonly staging: Staging;
  /** Digest of the file, where it is known beforehand; such a model has one file. */
  readonly sha256: string | undefined;
  readonly onProgress: ReportProgress;
  /** Takes one line for people. */
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
  readonly environment: Environment;
}
