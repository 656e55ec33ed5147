/**
 * The engine in this thread: owns a backend, steps while there is work, and yields to the event loop
 * between steps. The way of a step: schedule, move blocks, forward, observe, commit, sample.
 */
import { BackendError, OverloadedError, RequestError } from "../errors.ts";
import { checkRequest } from "./admission.ts";
import type { Backend, LogitStats } from "./backend.ts";
import { moveBlocks } from "./block_mover.ts";
import { BlockPool } from "./block_pool.ts";
import type {
  Engine,
  EngineInfo,
  EngineStats,
  FinishReason,
  SequenceRequest,
  SequenceStream,
} from "./engine.ts";
import { EngineCounters } from "./engine_counters.ts";
import { engineInfo, type LocalEngineOptions, schedulerOptions } from "./engine_options.ts";
import { EventQueue } from "./event_queue.ts";
import { LogitRow } from "./logit_row.ts";
import type { ScheduledStep, StepEntry } from "./scheduled_step.ts";
import { hasStarted, Scheduler } from "./scheduler.ts";
import { Sequence } from "./sequence.ts";
import { StepAccount } from "./step_account.ts";
import { StepLoop } from "./step_loop.ts";
import { chooseToken, type TokenChoice } from "./token_choice.ts";

export class LocalEngine implements Engine {
  readonly #options: LocalEngineOptions;
  readonly #now: () => number;
  readonly #loop = new StepLoop(() => this.#guardedStep());
  readonly #counters = new EngineCounters();
  readonly #stop = new AbortController();
  #backend: Backend;
  #pool: BlockPool;
  #scheduler: Scheduler;
  #info: EngineInfo;
  #stepping = false;
  /** Asked to end during the step in flight. */
  #aborted: Sequence[] = [];
  /** Why it is down for good. */
  #closed: Error | undefined;
  #nextId = 1;

  /** Owns `backend` from now on: disposing of the engine disposes of it. */
  constructor(backend: Backend, options: LocalEngineOptions = {}) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#backend = backend;
    this.#pool = new BlockPool(backend.limits.kvBlocks, options.hashBlock);
    this.#scheduler = new Scheduler(this.#pool, schedulerOptions(backend, options));
    this.#info = engineInfo(backend, options);
  }

  get info(): EngineInfo {
    return this.#info;
  }

  // deno-lint-ignore require-await -- a refusal is a rejection, as over a port
  async submit(request: SequenceRequest): Promise<SequenceStream> {
    if (this.#closed !== undefined) throw this.#closed;
    checkRequest(request, this.#info);
    const { maxWaiting = 1024 } = this.#options;
    if (this.#scheduler.waiting >= maxWaiting) {
      throw new OverloadedError(`Cannot queue the request: ${maxWaiting} are waiting already`);
    }
    const sequence = this.#newSequence(request);
    this.#scheduler.add(sequence, this.#now());
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
    return this.#counters.snapshot(this.#scheduler, this.#pool);
  }

  async dispose(): Promise<void> {
    if (this.#stop.signal.aborted) return await this.#loop.idle();
    this.#closed ??= new BackendError("Cannot use the engine: it is disposed", {
      fatal: true,
    });
    for (const sequence of [...this.#scheduler.sequences()]) this.#abort(sequence);
    this.#stop.abort();
    await this.#loop.idle();
    await this.#backend.dispose();
  }

  /** One step; answers whether there was anything to do. */
  async #step(): Promise<boolean> {
    const step = this.#scheduler.schedule(this.#now());
    if (step.empty) return false;
    const account = new StepAccount(step, this.#backend, this.#counters);
    const rows = await this.#forward(step, account);
    for (const entry of step.entries) {
      try {
        await this.#advance(entry, rows, account);
      } catch (error) {
        if (isFatal(error)) throw error;
        this.#fail(entry.sequence, error);
      }
    }
    if (step.entries.length > 0) this.#scheduler.observe(account.observation);
    return true;
  }

  /** Moves blocks and runs the model. A failure that the backend survives ends this batch only. */
  async #forward(step: ScheduledStep, account: StepAccount): Promise<readonly LogitStats[]> {
    let start = this.#now();
    try {
      await moveBlocks(step, this.#backend, (lost) => this.#scheduler.dropHostCopy(lost));
      start = this.#now();
      const result = await this.#backend.forward(step.batch, this.#stop.signal);
      account.charge(result, this.#now() - start);
      return result.rows;
    } catch (error) {
      if (isFatal(error)) throw error;
      for (const sequence of step.withdraw()) this.#fail(sequence, error);
      return [];
    } finally {
      this.#counters.forwardTime += this.#now() - start;
      this.#counters.steps++;
    }
  }

  /** What a sequence makes of its rows: observe, commit, and, once all is computed, sample. */
  async #advance(
    entry: StepEntry,
    rows: readonly LogitStats[],
    account: StepAccount,
  ): Promise<void> {
    const { sequence } = entry;
    const row = await this.#observe(entry, rows);
    this.#scheduler.commit(sequence, entry.count);
    if (row === undefined || sequence.uncomputedTokens > 0) return;
    if (sequence.generatedTokens === 0) this.#startDecoding(sequence);
    if (sequence.maxTokens === 0) return this.#finish(sequence, "length");
    const drawn = account.draw(sequence);
    this.#tick(sequence, row);
    const choice = await chooseToken(sequence, row, this.#backend.config.vocabularySize);
    drawn(choice.token);
    if (sequence.stopsAt(choice.token)) return this.#finish(sequence, "stop", choice.token);
    await this.#emit(sequence, choice, row);
  }

  /** Checks the rows and takes prompt log-probabilities from them; answers the last one. */
  async #observe(entry: StepEntry, rows: readonly LogitStats[]): Promise<LogitRow | undefined> {
    const { sequence, firstRow } = entry;
    let last: LogitRow | undefined;
    for (let i = 0; i < entry.rows; i++) {
      last = new LogitRow(rows[firstRow + i] as LogitStats, this.#backend, firstRow + i);
      last.check();
      if (sequence.promptRowsLeft === 0) continue;
      const next = sequence.promptLogprobs.length + 1;
      if (sequence.computed + i + 1 !== next) continue;
      const token = sequence.tokens[next] as number;
      const top = last.top(sequence.request.topLogprobs ?? 0);
      sequence.promptLogprobs.push({ token, logprob: await last.logprob(token), top });
    }
    return last;
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
    const stats = { logprob, entropy, varentropy, endProbability };
    sequence.events.push({ type: "token", ...choice, ...stats, top });
    if (sequence.generatedTokens === sequence.maxTokens) this.#finish(sequence, "length");
  }

  #finish(sequence: Sequence, reason: FinishReason, stopToken?: number): void {
    if (sequence.phase === "finished") return;
    this.#scheduler.remove(sequence);
    this.#counters.finished(reason);
    sequence.events.push(sequence.endEvent(reason, this.#now(), stopToken));
    sequence.events.end();
  }

  #fail(sequence: Sequence, error: unknown): void {
    if (sequence.phase === "finished") return;
    // After a backend's failure nobody knows what the blocks hold.
    if (error instanceof BackendError) this.#scheduler.discard(sequence);
    else this.#scheduler.remove(sequence);
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
    this.#scheduler.resume(sequence);
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
      endTokens: this.#backend.config.endTokens,
    });
    return sequence;
  }

  /** A step, after which aborts are carried out and, if need be, the backend is rebuilt. */
  async #guardedStep(): Promise<boolean> {
    const start = this.#now();
    this.#stepping = true;
    try {
      return await this.#step();
    } catch (error) {
      await this.#recover(error);
      return true;
    } finally {
      this.#stepping = false;
      for (const sequence of this.#aborted.splice(0)) this.#finish(sequence, "abort");
      this.#counters.stepTime += this.#now() - start;
    }
  }

  /** Ends every sequence that has begun, and gets a new backend for those that have not. */
  async #recover(cause: unknown): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const error = cause instanceof BackendError
      ? cause
      : new BackendError("Cannot go on: the engine failed in a step", { fatal: true }, { cause });
    for (const sequence of [...this.#scheduler.sequences()]) {
      if (hasStarted(sequence)) this.#fail(sequence, error);
    }
    const lost = this.#scheduler;
    try {
      await this.#backend.dispose().catch(() => {});
      if (this.#options.recover === undefined) throw error;
      this.#attach(await this.#options.recover());
    } catch (reason) {
      this.#closed = reason instanceof BackendError ? reason : error;
      for (const sequence of [...lost.sequences()]) this.#fail(sequence, this.#closed);
      return;
    }
    for (const sequence of [...lost.sequences()]) this.#requeue(sequence);
  }

  /** Starts afresh on a new backend. */
  #attach(backend: Backend): void {
    this.#counters.schedulerLost(this.#scheduler);
    this.#backend = backend;
    this.#pool = new BlockPool(backend.limits.kvBlocks, this.#options.hashBlock);
    this.#scheduler = new Scheduler(this.#pool, schedulerOptions(backend, this.#options));
    this.#info = engineInfo(backend, this.#options);
  }

  /** Queues a sequence that has not begun, on a backend that may be smaller than the one before. */
  #requeue(sequence: Sequence): void {
    this.#scheduler.add(sequence, this.#now());
    try {
      checkRequest(sequence.request, this.#info);
    } catch (error) {
      this.#fail(sequence, error);
    }
  }
}

/** Whether the backend, or the engine's own state, is not to be used any further. */
function isFatal(error: unknown): boolean {
  if (error instanceof BackendError) return error.fatal;
  return !(error instanceof RequestError || error instanceof RangeError);
}
