/** A backend with all that lives and dies with it. */
import type { Backend } from "./backend.ts";
import { BlockPool } from "./kv/block_pool.ts";
import type { EngineInfo } from "./engine.ts";
import { engineInfo, type LocalEngineOptions, schedulerOptions } from "./engine_options.ts";
import { Scheduler } from "./scheduling/scheduler.ts";

export interface Machine {
  readonly backend: Backend;
  readonly pool: BlockPool;
  readonly scheduler: Scheduler;
  readonly info: EngineInfo;
}

export function createMachine(backend: Backend, options: LocalEngineOptions): Machine {
  const pool = new BlockPool(backend.limits.kvBlocks, options.hashBlock);
  const scheduler = new Scheduler(pool, schedulerOptions(backend, options));
  return { backend, pool, scheduler, info: engineInfo(backend, options) };
}
