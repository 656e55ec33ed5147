/** What a backend needs to know of a model's shape, read from GGUF metadata by `readModelConfig`. */

/** Rotary position embedding (arXiv 2104.09864) and how its frequencies are stretched. */
export interface RopeConfig {
  /** Base of the frequencies (theta), for example 10000. */
  readonly base: number;
  /** How many of each head's dimensions are rotated; even, at most `headSize`. */
  readonly dimensions: number;
  readonly scaling: RopeScaling;
}

/** How a model trained on a short context is stretched to a longer one. */
export type RopeScaling =
  | { readonly type: "none" }
  /** Positions are divided by `factor`. */
  | { readonly type: "linear"; readonly factor: number }
  /** YaRN (arXiv 2309.00071). */
  | {
    readonly type: "yarn";
    readonly factor: number;
    readonly originalContext: number;
    readonly attentionFactor: number;
    readonly betaFast: number;
    readonly betaSlow: number;
  };

/** Shape of a Llama-architecture transformer. All sizes count elements. */
export interface ModelConfig {
  readonly architecture: "llama";
  readonly name: string;
  readonly layers: number;
  /** Width of the residual stream. */
  readonly hiddenSize: number;
  readonly feedForwardSize: number;
  readonly heads: number;
  /** Divides `heads`. */
  readonly kvHeads: number;
  readonly headSize: number;
  readonly vocabularySize: number;
  /** Longest context that the model was trained for, in tokens. */
  readonly contextLength: number;
  readonly rmsEpsilon: number;
  readonly rope: RopeConfig;
  /** Whether the output layer is the embedding matrix itself. */
  readonly tiedOutput: boolean;
  /** Tokens that end a generation (end of sequence, end of turn), ascending, none repeated. */
  readonly endTokens: readonly number[];
}
