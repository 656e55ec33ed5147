/**
 * What share of a decode step of 8 sequences the engine spends outside `Backend.forward`, by a clock
 * that runs with the processor time of this process: others who compute do not count.
 */
import { setTimeout } from "node:timers/promises";
import type { SamplingParams } from "../../../core/engine/engine.ts";
import { LocalEngine } from "../../../core/engine/local_engine.ts";
import { ProcessorClock } from "../../eval/ablation/processor_clock.ts";
import { OwnBackend } from "../own_backend.ts";
import type { Row, Side } from "../row.ts";

const BATCH = 8;
const TOKENS = 64;
/** Prompts of one token each, so that nearly every step decodes all sequences. */
const FIRST_PROMPT = 100;

const SAMPLINGS: Readonly<Record<string, Omit<SamplingParams, "seed">>> = {
  "temperature 1": {},
  "greedy": { temperature: 0 },
  "temperature 0.7, top_p 0.9": { temperature: 0.7, topP: 0.9 },
  "repetition_penalty 1.1": { repetitionPenalty: 1.1 },
};

export const engineOverhead: Row = {
  name: "engine-overhead",
  about: `share of a step of ${BATCH} sequences outside the forward pass`,
  unit: "%",
  better: "less",
  runs: 3,
  async open({ model, defer }) {
    const options = { model, threads: 1, batch: BATCH, contextLength: TOKENS + 16 };
    const { backend } = await OwnBackend.open(options);
    const engine = new LocalEngine(backend, { now: new ProcessorClock().now });
    defer(() => engine.dispose());
    const sides = Object.entries(SAMPLINGS).map(([name, sampling]): Side => (
      { name, measure: () => overhead(engine, sampling) }
    ));
    const [own, ...others] = sides;
    if (own === undefined) throw new RangeError("Cannot measure overhead: there are no samplings");
    return { own, others };
  },
};

/** Of a run from idle to idle, in per cent. */
async function overhead(
  engine: LocalEngine,
  sampling: Omit<SamplingParams, "seed">,
): Promise<number> {
  const before = await engine.stats();
  await Promise.all(Array.from({ length: BATCH }, async (_, index) => {
    const stream = await engine.submit({
      prompt: [FIRST_PROMPT + index],
      sampling: { ...sampling, seed: BigInt(index) },
      maxTokens: TOKENS,
      ignoreEos: true,
    });
    for await (const _event of stream);
  }));
  // The step that ended the last stream is still under way, and over before any timer fires.
  await setTimeout(1);
  const after = await engine.stats();
  const outside = after.overheadSeconds - before.overheadSeconds;
  const inside = after.forwardSeconds - before.forwardSeconds;
  return 100 * outside / (outside + inside);
}
