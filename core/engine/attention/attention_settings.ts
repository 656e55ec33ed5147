/** What an engine can be told of attention, and the defaults. */
import {
  ATTENTION_FLOOR,
  ATTENTION_POLICIES,
  type AttentionControl,
  type AttentionFloor,
  DENSE_BELOW,
  type MassByLength,
} from "../../entropic/pruning.ts";
import { DIVERGENCE_BOUND, LEAST_BOUND } from "../../entropic/safeguards.ts";
import { checkNames, type Names } from "../../options.ts";
import type { BackendInfo } from "../backend.ts";
import type { AttentionInfo } from "../engine.ts";

/**
 * Plain data. `policy`, `minBlocks` and `gain` are for requests that leave them out; `mass` and
 * `threshold` are where the controller starts, and as far as it goes. Where neither `mass` nor
 * `massByLength` is given it starts from .95 and goes as far as the bound allows.
 */
export interface AttentionSettings extends Partial<AttentionControl> {
  /** Where `mass` is left out: what calibration found, by context length. */
  readonly massByLength?: MassByLength;
  /** Contexts of fewer tokens stay dense; 1024. */
  readonly denseBelow?: number;
  /** The least mass and the fewest blocks that a request may ask for; .5 and 4, and no less. */
  readonly leastMass?: number;
  readonly leastBlocks?: number;
  /** Nats of KL from dense attention that pruning may cost in the mean; .02. */
  readonly divergence?: number;
  /** Pruned steps from one dense shadow step to the next; 64. 0: never, and nothing is controlled. */
  readonly shadowEvery?: number;
}

const SETTINGS: Names<AttentionSettings> = {
  policy: true,
  mass: true,
  minBlocks: true,
  gain: true,
  threshold: true,
  massByLength: true,
  denseBelow: true,
  leastMass: true,
  leastBlocks: true,
  divergence: true,
  shadowEvery: true,
};

/** The settings with every default filled in but those of single requests. */
export interface AttentionRules {
  readonly control: AttentionControl;
  readonly masses: MassByLength;
  readonly threshold: number | undefined;
  readonly denseBelow: number;
  readonly floor: AttentionFloor;
  readonly divergence: number;
  readonly shadowEvery: number;
}

/**
 * @throws {RangeError} A setting is out of range; the message says what is allowed.
 * @throws {TypeError} There is no such setting.
 */
export function attentionRules(settings: AttentionSettings = {}): AttentionRules {
  checkSettings(settings);
  const { policy = "off", mass, massByLength = [], minBlocks, gain, threshold } = settings;
  return {
    control: {
      policy,
      ...(minBlocks !== undefined && { minBlocks }),
      ...(gain !== undefined && { gain }),
    },
    masses: mass === undefined ? massByLength : [{ length: 0, mass }],
    threshold,
    denseBelow: settings.denseBelow ?? DENSE_BELOW,
    floor: floorOf(settings),
    divergence: settings.divergence ?? DIVERGENCE_BOUND,
    shadowEvery: settings.shadowEvery ?? 64,
  };
}

/** What these rules come to on a backend. */
export function attentionInfo(
  { control, floor, denseBelow }: AttentionRules,
  backend: BackendInfo,
): AttentionInfo {
  if (backend.prunes) {
    return { policy: control.policy, allowed: ATTENTION_POLICIES, floor, denseBelow };
  }
  return {
    policy: "off",
    ...(control.policy !== "off" && { reason: NO_SKETCH }),
    allowed: ["off"],
    floor,
    denseBelow,
  };
}

const NO_SKETCH = "the backend has no sketch of the model's keys";

function floorOf({ leastMass, leastBlocks }: AttentionSettings): AttentionFloor {
  return {
    mass: leastMass ?? ATTENTION_FLOOR.mass,
    minBlocks: leastBlocks ?? ATTENTION_FLOOR.minBlocks,
  };
}

function checkSettings(settings: AttentionSettings): void {
  checkNames("attention", settings, SETTINGS);
  const { policy, ...numbers } = settings;
  if (policy !== undefined && !ATTENTION_POLICIES.includes(policy)) {
    throw new RangeError(
      `Cannot use attention ${policy}: it takes ${ATTENTION_POLICIES.join(", ")}`,
    );
  }
  const check = (name: keyof typeof numbers, low: number, high: number, whole = false) => {
    const value = settings[name];
    if (value === undefined) return;
    const within = typeof value === "number" && value >= low && value <= high;
    if (within && (!whole || Number.isInteger(value))) return;
    throw new RangeError(
      `Cannot use attention.${name} ${value}: it takes a ${whole ? "whole " : ""}number ` +
        (high < Number.MAX_VALUE ? `from ${low} to ${high}` : `from ${low} on`),
    );
  };
  check("leastMass", ATTENTION_FLOOR.mass, 1);
  check("leastBlocks", ATTENTION_FLOOR.minBlocks, 2 ** 24, true);
  const floor = floorOf(settings);
  check("mass", floor.mass, 1);
  check("minBlocks", floor.minBlocks, 2 ** 24, true);
  check("gain", -1, 1);
  check("threshold", 0, 1);
  check("denseBelow", 0, Infinity, true);
  check("divergence", LEAST_BOUND, Number.MAX_VALUE);
  check("shadowEvery", 0, 2 ** 31, true);
}
