/** The model store: names to files, files to byte sources. */
export { type CachedFile, cachedFiles, cacheDirectory } from "./cache_directory.ts";
export { FileSource, openFiles } from "./file_source.ts";
export { DEFAULT_MODEL, KNOWN_MODELS, type KnownModel } from "./known_models.ts";
export { megabytes, progressBar, type ProgressOutput } from "./progress_bar.ts";
export { type ResolvedModel, resolveModel, type ResolveOptions } from "./resolve_model.ts";
export type { ReportProgress, TransferProgress } from "./transfer_meter.ts";
