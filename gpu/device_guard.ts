/** Runs work on a device until that is lost, and rejects what is in flight when it is. */
import { BackendError } from "../core/errors.ts";
import { messageOf } from "./checked.ts";
import type { Device } from "./device.ts";

export class DeviceGuard {
  readonly #gpu: GPUDevice;
  /** Why nothing can be computed any more. */
  #failure: string | undefined;
  /** Rejects the calls in flight. */
  readonly #inFlight = new Set<(error: BackendError) => void>();

  constructor({ gpu, lost }: Device) {
    this.#gpu = gpu;
    void lost.then((reason) => this.fail(`the WebGPU device was lost (${reason})`));
    gpu.addEventListener("uncapturederror", (event) => {
      this.fail(`the WebGPU device failed: ${messageOf((event as GPUUncapturedErrorEvent).error)}`);
    });
  }

  /** The device is of no use any more. The first reason stays. */
  fail(reason: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = reason;
    for (const reject of this.#inFlight) reject(this.#error());
    this.#gpu.destroy();
  }

  /**
   * Runs `work`; whatever it throws leaves the device unusable.
   *
   * @throws {BackendError} The device is gone, or goes meanwhile. Always fatal.
   */
  async run<T>(work: (gpu: GPUDevice) => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#error();
    // Node 20 has no Promise.withResolvers.
    let reject: (error: BackendError) => void = () => {};
    const gone = new Promise<never>((_, fail) => reject = fail);
    this.#inFlight.add(reject);
    try {
      return await Promise.race([work(this.#gpu), gone]);
    } catch (cause) {
      // A read fails a moment before the device is known to be lost.
      this.fail(`the WebGPU device failed: ${messageOf(cause)}`);
      throw this.#error(cause);
    } finally {
      this.#inFlight.delete(reject);
    }
  }

  #error(cause?: unknown): BackendError {
    const message = `Cannot compute: ${this.#failure}`;
    return new BackendError(message, { fatal: true }, { cause });
  }
}
