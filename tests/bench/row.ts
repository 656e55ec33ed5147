/** A row of the bench: the sides that are measured in turn, and what their values mean. */
import type { TensorFormat } from "./formats.ts";

/** What is measured: a contender at its workload. */
export interface Side {
  readonly name: string;
  /** Its first run counts like the others. */
  readonly warmsUp?: boolean;
  /** One run; a value in the row's unit. */
  measure(): Promise<number>;
}

/** A line of what a row is made of: a name, and figures by name. */
export type Detail = Readonly<Record<string, string | number>>;

export interface Sides {
  /** Its value is the row's. */
  readonly own: Side;
  /** The best of these is the one compared with. */
  readonly peers?: readonly Side[];
  /** This engine in other settings, or at other sizes. */
  readonly others?: readonly Side[];
  /** Peers that are not here, and how to get them. */
  readonly missing?: readonly string[];
  /** What else there is to tell once all have run. */
  details?(): Promise<readonly Detail[]>;
}

/** What a row gets to work with. */
export interface Bench {
  /** Path of the model file. */
  readonly model: string;
  /**
   * The same model with its tensors in another format; converted once.
   *
   * @throws {MissingPeerError} The tool that converts is not installed.
   */
  converted(format: TensorFormat): Promise<string>;
  /** Calls back when the row is through. */
  defer(dispose: () => Promise<void>): void;
}

export interface Row {
  readonly name: string;
  readonly about: string;
  readonly unit: string;
  /** Which of two values is the better one. */
  readonly better: "more" | "less";
  /** Runs of each side, unless the command line says. */
  readonly runs?: number;
  /** @throws {MissingPeerError} Even this engine's side needs what is not installed. */
  open(bench: Bench): Promise<Sides>;
}
