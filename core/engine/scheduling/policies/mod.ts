/** The policies that an engine can be asked for, by name. */
import { fcfs, type Policy } from "../policy.ts";
import { entropic } from "./entropic.ts";
import { mlfq } from "./mlfq.ts";
import { paper } from "./paper.ts";
import { sjf } from "./sjf.ts";

export const POLICIES = ["fcfs", "sjf", "mlfq", "paper", "entropic"] as const;
export type PolicyName = typeof POLICIES[number];

/**
 * @param tail How long a wait is tolerated for the sake of the mean, in long answers' time; 100 where
 * left out. `fcfs` and `sjf` have no use for it.
 * @throws {RangeError} There is no such policy, or `tail` is not a number above 0.
 */
export function createPolicy(name: PolicyName, tail?: number): Policy {
  if (tail !== undefined && !(tail > 0 && tail < Infinity)) {
    throw new RangeError(`Cannot use tail ${tail}: it takes a finite number above 0`);
  }
  switch (name) {
    case "fcfs":
      return fcfs;
    case "sjf":
      return sjf;
    case "mlfq":
      return mlfq(tail);
    case "paper":
      return paper(tail);
    case "entropic":
      return entropic(tail);
    default:
      throw new RangeError(`Cannot use policy "${name}": it takes ${POLICIES.join(", ")}`);
  }
}
