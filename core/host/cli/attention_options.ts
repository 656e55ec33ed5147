/** The options of commands that generate, on how answers attend to long contexts. */
import type { AttentionSettings } from "../../../mod.ts";
import {
  ATTENTION_FLOOR,
  ATTENTION_POLICIES,
  type AttentionPolicy,
} from "../../entropic/pruning.ts";
import { LEAST_BOUND } from "../../entropic/safeguards.ts";
import type { Arguments, Option } from "./options.ts";

export const ATTENTION_OPTIONS = {
  attention: {
    value: "A",
    help: `how answers attend to long contexts: ${ATTENTION_POLICIES.join(", ")} (default off)`,
  },
  "attention-mass": {
    value: "M",
    help: "share of the attention to keep (default: as calibrated, else 0.95 at first)",
  },
  divergence: {
    value: "NATS",
    help: "KL from dense attention that pruning may cost in the mean (default 0.02)",
  },
} as const satisfies Record<string, Option>;

/** @throws {RangeError} A value is not allowed; the message says what is. */
export function attentionSettings(
  given: Arguments<keyof typeof ATTENTION_OPTIONS>,
): AttentionSettings {
  const policy = given.text("attention");
  if (policy !== undefined && !isPolicy(policy)) {
    const allowed = ATTENTION_POLICIES.join(", ");
    throw new RangeError(`Cannot use --attention "${policy}": it takes ${allowed}`);
  }
  const mass = given.number("attention-mass", ATTENTION_FLOOR.mass, 1);
  const divergence = given.number("divergence", LEAST_BOUND, Number.MAX_VALUE);
  return {
    ...(policy !== undefined && { policy }),
    ...(mass !== undefined && { mass }),
    ...(divergence !== undefined && { divergence }),
  };
}

function isPolicy(name: string): name is AttentionPolicy {
  return (ATTENTION_POLICIES as readonly string[]).includes(name);
}
