/** What the routes of one mounted server share. */
import type { ServerMetrics } from "./metrics.ts";
import type { ModelSlot } from "./model_slot.ts";
import type { Settings } from "./options.ts";

export interface Server {
  readonly slot: ModelSlot;
  readonly settings: Settings;
  readonly metrics: ServerMetrics;
}
