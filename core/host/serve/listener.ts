/** What serving on one runtime amounts to; `serve` picks the implementation. */

/** The part of a Hono app, or of any handler, that answers requests. */
export type Fetch = (request: Request) => Response | Promise<Response>;

export interface Address {
  readonly hostname: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** A bound socket that answers requests. */
export interface Listener {
  /** The port in use. */
  readonly port: number;
  /** Takes no more connections; resolves when the running requests have been answered. */
  drain(): Promise<void>;
  /** Cuts what still runs. */
  cut(): Promise<void>;
}

/** Binds the address. Rejects with the runtime's own error when it cannot. */
export type Listen = (fetch: Fetch, address: Address) => Promise<Listener>;
