/**
 * Steps under way: the one whose results the engine waits for, and where it can the one after it. A
 * machine apart then computes while the engine reads, draws, and lets its callers in. A step begins
 * ahead only where it is certain who runs in it, on tokens that the machine draws by itself. Who turns
 * out to have ended is left out: what was computed for it is lost, nothing else.
 * (vLLM's async scheduling and SGLang's overlap scheduler hide the same wait, and drop the same.)
 */
import type { Shadow, ShadowSteps } from "./attention/shadow_steps.ts";
import type { ForwardResult } from "./backend.ts";
import { moveBlocks } from "./kv/block_mover.ts";
import type { Machine } from "./machine.ts";
import { canRun } from "./scheduling/residents.ts";
import type { ScheduledStep } from "./scheduling/scheduled_step.ts";

interface RunningStep {
  readonly step: ScheduledStep;
  readonly result: Promise<ForwardResult>;
  /** When the machine got to it, in milliseconds on the engine's clock. */
  since: number;
  /** A token of it that has run densely as well. */
  readonly shadow?: Shadow | undefined;
}

export interface StepResults {
  readonly result: ForwardResult;
  readonly shadow: Shadow | undefined;
  /** That the machine took, and that the engine waited for it. */
  readonly milliseconds: number;
  readonly waited: number;
}

export class StepsInFlight {
  readonly #shadows: ShadowSteps;
  readonly #now: () => number;
  readonly #signal: AbortSignal;
  /** The step that `next` answers without scheduling it. */
  #ahead: RunningStep | undefined;
  #begun: RunningStep | undefined;

  /** @param now Milliseconds on the engine's clock. */
  constructor(shadows: ShadowSteps, now: () => number, signal: AbortSignal) {
    this.#shadows = shadows;
    this.#now = now;
    this.#signal = signal;
  }

  /** The step whose turn it is, without those who would not run now; `undefined` at rest. */
  next({ scheduler }: Machine): ScheduledStep | undefined {
    this.#begun = this.#ahead;
    this.#ahead = undefined;
    if (this.#begun === undefined) {
      const step = scheduler.schedule(this.#now());
      return step.empty ? undefined : step;
    }
    const { step } = this.#begun;
    step.keep((sequence) => sequence.resident && canRun(sequence));
    return step;
  }

  /**
   * Waits for the results of the step that `next` answered; meanwhile the one after it begins.
   *
   * @throws {BackendError} The machine failed.
   */
  async results(step: ScheduledStep, machine: Machine): Promise<StepResults> {
    const asked = this.#now();
    const { result: running, since, shadow } = this.#begun ?? await this.#begin(step, machine);
    this.#ahead = this.#beginAfter(step, machine);
    const result = await running;
    const now = this.#now();
    if (this.#ahead !== undefined) this.#ahead.since = now;
    return { result, shadow, milliseconds: now - since, waited: now - Math.max(asked, since) };
  }

  /** The machine is lost, and what ran on it. */
  forget(): void {
    this.#ahead = undefined;
  }

  /** Moves blocks, runs the shadow of a token if it is time, and sets the model going. */
  async #begin(step: ScheduledStep, { scheduler, backend }: Machine): Promise<RunningStep> {
    await moveBlocks(step, backend, (lost) => scheduler.dropHostCopy(lost));
    const shadow = await this.#shadows.run(step, backend, this.#signal);
    const since = this.#now();
    return { step, result: backend.forward(step.batch, this.#signal), since, shadow };
  }

  #beginAfter(step: ScheduledStep, { scheduler, backend }: Machine): RunningStep | undefined {
    if (backend.follow === undefined) return undefined;
    const since = this.#now();
    const next = scheduler.scheduleAfter(step, since);
    if (next === undefined) return undefined;
    const result = backend.follow(next.following, this.#signal);
    // Nobody waits for it where the step before fails.
    result.catch(() => {});
    return { step: next, result, since };
  }
}
