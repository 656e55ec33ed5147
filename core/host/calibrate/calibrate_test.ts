import { assert, assertEquals, assertRejects } from "@std/assert";
import type {
  ForwardResult,
  KeyMoments,
  KeySketch,
  Pruning,
  SequenceInput,
} from "../../engine/backend.ts";
import { ByteTokenizer } from "../../../tests/support/byte_tokenizer.ts";
import { ScriptedBackend } from "../../../tests/support/scripted_backend.ts";
import { applyCalibration, calibrate } from "./calibrate.ts";
import { chooseMass, MASSES } from "./choose_mass.ts";

/** A backend whose logits are the worse, the less attention a plan keeps. */
class PrunedBackend extends ScriptedBackend {
  /** Tokens that were seen while gathering, and the sketch that is set. */
  gathered = 0;
  stretch = 0;
  sketch: KeySketch | undefined;
  override readonly pruning: Pruning;
  /** Nats that the best logit loses for all of the attention. */
  readonly #harm: number;
  #batch: readonly SequenceInput[] = [];

  constructor(harm = 1) {
    super({
      vocabularySize: 260,
      limits: { kvBlocks: 512, contextLength: 2048, maxBatchTokens: 256 },
      prunes: true,
      prune: () => {}, // `logits` does
    });
    this.#harm = harm;
    const { layers, kvHeads, headSize } = this.config;
    const heads = layers * kvHeads;
    let gathering = false;
    this.pruning = {
      gather: (on, stretch = 1) => {
        const moments: KeyMoments = {
          tokens: this.gathered,
          keyMean: new Float32Array(heads * headSize),
          keys: unitMatrices(heads, headSize),
          queries: unitMatrices(heads, headSize),
        };
        const wasGathering = gathering;
        gathering = on;
        this.isGathering = on;
        if (on) this.stretch = stretch;
        return Promise.resolve(wasGathering ? moments : undefined);
      },
      useSketch: (sketch) => {
        this.sketch = sketch;
        return Promise.resolve();
      },
    };
  }

  isGathering = false;

  override forward(batch: readonly SequenceInput[]): Promise<ForwardResult> {
    this.#batch = batch;
    if (this.isGathering) {
      this.gathered += batch.reduce((sum, { tokens }) => sum + tokens.length, 0);
    }
    return super.forward(batch);
  }

  override async logits(row: number): Promise<Float32Array> {
    const logits = await super.logits(row);
    const plan = this.#batch[row]?.attention;
    const kept = plan?.kind === "mass" ? plan.mass : 1;
    const best = logits.indexOf(Math.max(...logits));
    logits[best]! -= this.#harm * (1 - kept);
    return logits;
  }
}

function unitMatrices(count: number, size: number): Float32Array {
  const all = new Float32Array(count * size * size);
  for (let i = 0; i < count * size; i++) all[i * size + i % size] = 1;
  return all;
}

const TEXT = Array.from({ length: 1500 }, (_, i) => String.fromCharCode(33 + (i * i) % 90)).join(
  "",
);

Deno.test("calibrate gathers all texts, sets the sketch and chooses a share for each length", async () => {
  const backend = new PrunedBackend();
  const lines: string[] = [];
  const { model, mass, bound, sketch } = await calibrate(
    backend,
    new ByteTokenizer(),
    [TEXT, "short"],
    { model: "m", lengths: [512, 1024, 2048], dimensions: 8, log: (line) => lines.push(line) },
  );
  assertEquals([model, bound, backend.gathered], ["m", 0.02, 1505]);
  assertEquals(backend.stretch, Math.floor(backend.config.contextLength / 1024));
  assertEquals(backend.sketch, sketch);
  assertEquals(mass.map(({ length }) => length), [512, 1024]);
  assertEquals(lines.length, 4);
  assert(lines[3]?.includes("2048 tokens: no text is that long"));
});

Deno.test("calibrate in a hurry reads little and leaves the shares open", async () => {
  const backend = new PrunedBackend();
  const found = await calibrate(backend, new ByteTokenizer(), [TEXT], {
    model: "m",
    quick: true,
    dimensions: 8,
  });
  assertEquals([found.mass, found.bound, backend.gathered], [[], undefined, 1024]);
});

Deno.test("calibrate spreads a short text over the context as well", async () => {
  const backend = new PrunedBackend();
  const options = { model: "m", quick: true, dimensions: 8 };
  await calibrate(backend, new ByteTokenizer(), [TEXT.slice(0, 100)], options);
  assertEquals(backend.gathered, 100);
  assertEquals(backend.stretch, Math.floor(backend.config.contextLength / 100));
});

Deno.test("calibrate refuses backends that cannot prune, and texts of nothing", async () => {
  const options = { model: "m", dimensions: 8 };
  await assertRejects(
    () => calibrate(new ScriptedBackend(), new ByteTokenizer(), [TEXT], options),
    TypeError,
    "backend scripted attends densely",
  );
  await assertRejects(
    () => calibrate(new PrunedBackend(), new ByteTokenizer(), [""], options),
    RangeError,
    "the texts are empty",
  );
});

Deno.test("applyCalibration sets the sketch, where there is something to set", async () => {
  const backend = new PrunedBackend();
  const options = { model: "m", quick: true, dimensions: 8 };
  const calibration = await calibrate(backend, new ByteTokenizer(), [TEXT], options);
  const another = new PrunedBackend();
  await applyCalibration(another, calibration);
  assertEquals(another.sketch, calibration.sketch);
  await assertRejects(() => applyCalibration(new ScriptedBackend(), calibration), TypeError);
});

Deno.test("chooseMass takes the smallest share that keeps to the bound", async () => {
  const tokens = new ByteTokenizer().encode(TEXT);
  const options = { lengths: [512], minBlocks: 4, positions: 64 };
  const massFor = async (bound: number, harm: number) =>
    (await chooseMass(new PrunedBackend(harm), [tokens], { ...options, bound }))[0]?.mass;
  assertEquals(await massFor(100, 0), MASSES[0]);
  assertEquals(await massFor(1e-9, 5), 1);
  const [strict, loose] = [await massFor(0.001, 1), await massFor(0.01, 1)];
  assert(strict! > loose! && strict! < 1, `${strict} ${loose}`);
});
