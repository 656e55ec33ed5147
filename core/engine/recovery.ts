/** How an engine gets a new machine after a fatal failure, and what becomes of its sequences. */
import { BackendError } from "../errors.ts";
import { checkRequest } from "./admission.ts";
import type { LocalEngineOptions } from "./engine_options.ts";
import { createMachine, type Machine } from "./machine.ts";
import { hasStarted } from "./scheduling/scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** The engine that recovers. */
export interface Recovering {
  readonly options: LocalEngineOptions;
  /** Milliseconds on the engine's clock. */
  now(): number;
  /** Takes the new machine. */
  attach(machine: Machine): void;
  /** There is none: the engine is down for good. */
  close(error: BackendError): void;
  /** Ends a sequence with an error. */
  fail(sequence: Sequence, error: unknown): void;
}

/**
 * Ends every sequence that has begun, and gets a new backend, maybe a smaller one, for those that have
 * not. What is submitted meanwhile goes to the lost machine and is moved with the others.
 */
export async function recover(lost: Machine, cause: unknown, engine: Recovering): Promise<void> {
  const error = cause instanceof BackendError
    ? cause
    : new BackendError("Cannot go on: the engine failed in a step", { fatal: true }, { cause });
  const { log = () => {} } = engine.options;
  const left = () => [...lost.scheduler.sequences()];
  for (const sequence of left()) if (hasStarted(sequence)) engine.fail(sequence, error);
  let machine: Machine;
  try {
    machine = await rebuild(lost, error, engine.options);
  } catch (reason) {
    const down = reason instanceof BackendError ? reason : error;
    engine.close(down);
    log(`${error.message}; the engine is down${down === error ? "" : `: ${down.message}`}`);
    for (const sequence of left()) engine.fail(sequence, down);
    return;
  }
  // In the same tick as the await, so that no submit falls between the two machines.
  engine.attach(machine);
  const { kind, variant } = machine.info.backend;
  log(`${error.message}; going on with ${kind} (${variant})`);
  for (const sequence of left()) requeue(sequence, machine, engine);
}

async function rebuild(
  { backend }: Machine,
  error: BackendError,
  options: LocalEngineOptions,
): Promise<Machine> {
  await backend.dispose().catch(() => {});
  if (options.recover === undefined) throw error;
  return createMachine(await options.recover(), options);
}

function requeue(sequence: Sequence, { scheduler, info }: Machine, engine: Recovering): void {
  scheduler.add(sequence, engine.now());
  try {
    checkRequest(sequence.request, info);
  } catch (error) {
    engine.fail(sequence, error);
  }
}
