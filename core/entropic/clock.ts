/**
 * Entropic time (arXiv 2603.03310, section 3): progress counted in entropy removed instead of in
 * tokens emitted, tau = sum over t of max(0, H_{t-1} - H_t), in nats. With a floor, what lies below it
 * counts as the floor, so that jitter of a distribution that is all but certain removes nothing.
 */

/** Where a sequence stands in its entropic time. */
export interface EntropicClock {
  /** Nats of entropy removed so far. */
  readonly tau: number;
  /** H of the latest distribution in nats; undefined before the first. */
  readonly entropy: number | undefined;
  /** Exponential average of max(0, H_{t-1} - H_t), nats a token; undefined before the first. */
  readonly pace: number | undefined;
  /** H_floor in nats, >= 0. */
  readonly floor: number;
}

/**
 * A clock that has seen no distribution yet. Without a floor: entropies here are exact, so that what
 * little a certain step removes is no noise, and tau is what the paper defines.
 */
export const CLOCK_START: EntropicClock = {
  tau: 0,
  entropy: undefined,
  pace: undefined,
  floor: 0,
};

/** Share of the latest drop in the average. */
const SMOOTHING = 0.1;

/**
 * The clock after one more next-token distribution.
 *
 * @param entropy H_t in nats, of the raw distribution at temperature 1.
 */
export function advance(clock: EntropicClock, entropy: number): EntropicClock {
  if (clock.entropy === undefined) return { ...clock, entropy };
  const { tau, floor } = clock;
  const removed = Math.max(0, clock.entropy - Math.max(floor, entropy));
  const { pace = removed } = clock;
  return { tau: tau + removed, entropy, pace: pace + SMOOTHING * (removed - pace), floor };
}
