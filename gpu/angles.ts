/** The rotary angles of a step's positions, in double precision, which GPUs lack. */
import type { ModelConfig } from "../core/model/config.ts";
import { ropeFrequencies } from "../core/model/rope.ts";
import { TOKEN_WORDS } from "./step_input.ts";

export class RotaryAngles {
  readonly #inverse: Float64Array;
  readonly #scale: number;

  constructor({ rope }: ModelConfig, factors: ArrayLike<number> | undefined) {
    const { inverse, scale } = ropeFrequencies(rope, factors);
    [this.#inverse, this.#scale] = [inverse, scale];
  }

  /**
   * Cosine and sine of each pair, shape [tokens][pairs][2].
   *
   * @param tokens Words of the tokens, as `StepInput` has them.
   * @param stretch What positions are multiplied by.
   */
  of(tokens: Uint32Array, stretch = 1): Float32Array<ArrayBuffer> {
    const pairs = this.#inverse.length;
    const angles = new Float32Array(tokens.length / TOKEN_WORDS * pairs * 2);
    let at = 0;
    for (let token = 0; token < tokens.length; token += TOKEN_WORDS) {
      const position = (tokens[token + 1] ?? 0) * stretch;
      for (let pair = 0; pair < pairs; pair++) {
        const angle = position * (this.#inverse[pair] ?? 0);
        angles[at++] = Math.cos(angle) * this.#scale;
        angles[at++] = Math.sin(angle) * this.#scale;
      }
    }
    return angles;
  }
}
