/**
 * The engine in this thread: owns a backend, steps while there is work, and yields to the event loop
 * between steps. The way of a step: schedule, move blocks, forward, observe, commit, sample. Where the
 * backend can, the next one is under way by the time that this one is read.
 */
import { BackendError, OverloadedError, RequestError } from "../errors.ts";
import { checkRequest } from "./admission.ts";
import { AttentionGuard } from "./attention/attention_guard.ts";
import { attentionRules } from "./attention/attention_settings.ts";
import type { Backend, LogitStats } from "./backend.ts";
import type {
  Engine,
  EngineInfo,
  EngineStats,
  FinishReason,
  SequenceRequest,
  SequenceStream,
} from "./engine.ts";
import { EngineCounters } from "./engine_counters.ts";
import { checkOptions, type LocalEngineOptions } from "./engine_options.ts";
import { EventQueue } from "./event_queue.ts";
import type { LogitRow } from "./sampling/logit_row.ts";
import { createMachine, type Machine } from "./machine.ts";
import { observeRows } from "./observe_rows.ts";
import { recover } from "./recovery.ts";
import type { ScheduledStep } from "./scheduling/scheduled_step.ts";
import { Sequence } from "./sequence.ts";
import { measure, ShadowSteps } from "./attention/shadow_steps.ts";
import { StepAccount } from "./step_account.ts";
import { StepLoop } from "./step_loop.ts";
import { StepsInFlight } from "./steps_in_flight.ts";
import { chooseToken, type TokenChoice } from "./sampling/token_choice.ts";

export class LocalEngine implements Engine {
  readonly #options: LocalEngineOptions;
  readonly #now: () => number;
  readonly #loop = new StepLoop(() => this.#guardedStep());
  readonly #counters = new EngineCounters();
  readonly #guard: AttentionGuard;
  readonly #shadows: ShadowSteps;
  readonly #stop = new AbortController();
  readonly #steps: StepsInFlight;
  #machine: Machine;
  #stepping = false;
  /** Asked to end during the step in flight. */
  #aborted: Sequence[] = [];
  /** Why it is down for good. */
  #closed: Error | undefined;
  #nextId = 1;

  /**
   * Owns `backend` from now on: disposing of the engine disposes of it.
   *
   * @throws {RangeError} An option is out of range.
   */
  constructor(backend: Backend, options: LocalEngineOptions = {}) {
    checkOptions(options);
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#machine = createMachine(backend, options);
    const rules = attentionRules(options.attention);
    this.#guard = new AttentionGuard(rules, backend.describe(), options.log ?? (() => {}));
    this.#shadows = new ShadowSteps(rules.shadowEvery, this.#now);
    this.#steps = new StepsInFlight(this.#shadows, this.#now, this.#stop.signal);
  }

  get info(): EngineInfo {
    return this.#machine.info;
  }

  // deno-lint-ignore require-await -- a refusal is a rejection, as over a port
  async submit(request: SequenceRequest): Promise<SequenceStream> {
    if (this.#closed !== undefined) throw this.#closed;
    checkRequest(request, this.info);
    const { maxWaiting = 1024 } = this.#options;
    const { scheduler } = this.#machine;
    if (scheduler.waiting >= maxWaiting) {
      throw new OverloadedError(`Cannot queue the request: ${maxWaiting} are waiting already`);
    }
    const sequence = this.#newSequence(request);
    scheduler.add(sequence, this.#now());
    this.#loop.wake();
    return {
      id: sequence.id,
      abort: () => this.#abort(sequence),
      [Symbol.asyncIterator]: () => sequence.events,
    };
  }

  // deno-lint-ignore require-await -- the contract is asynchronous for engines in a Worker
  async stats(): Promise<EngineStats> {
    if (this.#closed !== undefined) throw this.#closed;
    const { scheduler, pool } = this.#machine;
    const { attention, ...counts } = this.#counters.snapshot(scheduler, pool);
    const { state } = this.#guard;
    const shadowSeconds = this.#shadows.seconds;
    return { ...counts, attention: { ...state, totals: attention, shadowSeconds } };
  }

  async dispose(): Promise<void> {
    if (this.#stop.signal.aborted) return await this.#loop.idle();
    this.#closed ??= new BackendError("Cannot use the engine: it is disposed", {
      fatal: true,
    });
    for (const sequence of [...this.#machine.scheduler.sequences()]) this.#abort(sequence);
    this.#stop.abort();
    await this.#loop.idle();
    await this.#machine.backend.dispose();
  }

  /** One step; answers whether there was anything to do. */
  async #step(): Promise<boolean> {
    const { scheduler, backend } = this.#machine;
    const step = this.#steps.next(this.#machine);
    if (step === undefined) return false;
    const account = new StepAccount(step, backend, this.#counters);
    const rows = await this.#forward(step, account);
    for (const entry of step.entries) {
      await this.#alone(entry.sequence, async (sequence) => {
        const row = await observeRows(entry, rows, backend);
        scheduler.commit(sequence, entry.count);
        if (row !== undefined && sequence.uncomputedTokens === 0) {
          await this.#sample(sequence, row, account);
        }
      });
    }
    if (step.entries.length > 0) scheduler.observe(account.observation);
    return true;
  }

  /** Moves blocks and runs the model. A failure that the backend survives ends this batch only. */
  async #forward(step: ScheduledStep, account: StepAccount): Promise<readonly LogitStats[]> {
    this.#counters.steps++;
    try {
      const { result, shadow, milliseconds, waited } = await this.#steps.results(
        step,
        this.#machine,
      );
      this.#counters.forwardTime += waited;
      account.charge(result, milliseconds);
      if (shadow !== undefined) this.#guard.observe(await measure(shadow, this.#machine.backend));
      return result.rows;
    } catch (error) {
      if (isFatal(error)) throw error;
      for (const sequence of step.withdraw()) this.#fail(sequence, error);
      return [];
    }
  }

  /** Lets a failure of what concerns one sequence end that sequence and no other. */
  async #alone(sequence: Sequence, act: (sequence: Sequence) => Promise<void>): Promise<void> {
    try {
      await act(sequence);
    } catch (error) {
      if (isFatal(error)) throw error;
      this.#fail(sequence, error);
    }
  }

  /** All its tokens are computed: draws the next from the last row. */
  async #sample(sequence: Sequence, row: LogitRow, account: StepAccount): Promise<void> {
    if (sequence.generatedTokens === 0) this.#startDecoding(sequence);
    if (sequence.maxTokens === 0) return this.#finish(sequence, "length");
    const drawn = account.draw(sequence);
    this.#tick(sequence, row);
    const { vocabularySize } = this.info.config;
    const choice = await chooseToken(sequence, row, vocabularySize);
    drawn(choice.token);
    if (sequence.stopsAt(choice.token)) return this.#finish(sequence, "stop", choice.token);
    await this.#emit(sequence, choice, row);
    this.#guard.plan(sequence, vocabularySize);
  }

  /** The prompt is through. */
  #startDecoding(sequence: Sequence): void {
    sequence.milestones.firstToken ??= this.#now();
    this.#counters.prefilled(sequence);
    if (sequence.request.promptLogprobs === true) {
      sequence.events.push({ type: "prompt", logprobs: sequence.promptLogprobs });
    }
  }

  /** Advances the sequence's entropic time. */
  #tick(sequence: Sequence, row: LogitRow): void {
    const { tau } = sequence.clock;
    sequence.observe(row.stats);
    this.#counters.tau += sequence.clock.tau - tau;
  }

  async #emit(sequence: Sequence, choice: TokenChoice, row: LogitRow): Promise<void> {
    const { token } = choice;
    const logprob = await row.logprob(token);
    sequence.append(token);
    this.#counters.generatedTokens++;
    const { entropy, varentropy, endProbability } = row.stats;
    const top = row.top(sequence.request.topLogprobs ?? 0);
    const { latest: attention } = sequence.attention;
    sequence.events.push({
      type: "token",
      ...choice,
      ...{ logprob, entropy, varentropy, endProbability, top },
      ...(attention && { attention }),
    });
    if (sequence.generatedTokens === sequence.maxTokens) this.#finish(sequence, "length");
  }

  #finish(sequence: Sequence, reason: FinishReason, stopToken?: number): void {
    if (sequence.phase === "finished") return;
    this.#machine.scheduler.remove(sequence);
    this.#counters.finished(reason);
    sequence.events.push(sequence.endEvent(reason, this.#now(), stopToken));
    sequence.events.end();
  }

  #fail(sequence: Sequence, error: unknown): void {
    if (sequence.phase === "finished") return;
    const { scheduler } = this.#machine;
    // After a backend's failure nobody knows what the blocks hold.
    if (error instanceof BackendError) scheduler.discard(sequence);
    else scheduler.remove(sequence);
    this.#counters.finished("error");
    sequence.events.fail(error);
  }

  #abort(sequence: Sequence): void {
    if (sequence.aborted || sequence.phase === "finished") return;
    sequence.aborted = true;
    if (this.#stepping) this.#aborted.push(sequence);
    else this.#finish(sequence, "abort");
    this.#loop.wake();
  }

  #resume(sequence: Sequence): void {
    this.#machine.scheduler.resume(sequence);
    this.#loop.wake();
  }

  #newSequence(request: SequenceRequest): Sequence {
    const { eventBuffer = 64 } = this.#options;
    const sequence: Sequence = new Sequence(this.#nextId++, request, {
      events: new EventQueue(eventBuffer, {
        drained: () => this.#resume(sequence),
        abandoned: () => this.#abort(sequence),
      }),
      arrival: this.#now(),
      endTokens: this.info.config.endTokens,
      attention: this.#guard.controlOf(request),
      entropyFloor: this.info.entropyFloor,
    });
    return sequence;
  }

  /** A step, after which aborts are carried out and, if need be, the backend is replaced. */
  async #guardedStep(): Promise<boolean> {
    const start = this.#now();
    this.#stepping = true;
    try {
      return await this.#step();
    } catch (error) {
      this.#steps.forget();
      await this.#recover(error);
      return true;
    } finally {
      this.#stepping = false;
      for (const sequence of this.#aborted.splice(0)) this.#finish(sequence, "abort");
      this.#counters.stepTime += this.#now() - start;
    }
  }

  async #recover(cause: unknown): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const lost = this.#machine;
    await recover(lost, cause, {
      options: this.#options,
      now: this.#now,
      attach: (machine) => {
        this.#counters.schedulerLost(lost.scheduler);
        this.#machine = machine;
        this.#guard.attach(machine.info.backend);
      },
      close: (error) => this.#closed = error,
      fail: (sequence, error) => this.#fail(sequence, error),
    });
  }
}

/** Whether the backend, or the engine's own state, is not to be used any further. */
function isFatal(error: unknown): boolean {
  if (error instanceof BackendError) return error.fatal;
  return !(error instanceof RequestError || error instanceof RangeError);
}
