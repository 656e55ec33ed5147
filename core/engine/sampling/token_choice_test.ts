import { assertEquals } from "@std/assert";
import type { Backend, LogitStats } from "../backend.ts";
import type { SamplingParams } from "../engine.ts";
import type { Sequence } from "../sequence.ts";
import { uncertainty } from "../../entropic/entropy.ts";
import {
  drawByDefinition,
  drawFromRow,
  rankedIds,
} from "../../../tests/support/draw_by_definition.ts";
import { LogitAdjuster } from "./logit_adjuster.ts";
import { LogitRow } from "./logit_row.ts";
import { chooseToken } from "./token_choice.ts";
import { uniform } from "./random.ts";

/** A steep row of 1,000 tokens, of which statistics list 32. */
const LOGITS = Float32Array.from({ length: 1000 }, (_, id) => -id / 12);
const LISTED = 32;

/** What is chosen with this sampling, and what the backend was asked for meanwhile. */
async function choose(sampling: Omit<SamplingParams, "seed">) {
  const asked: string[] = [];
  const backend: Partial<Backend> = {
    logitsOf(_row, ids) {
      asked.push("logitsOf");
      return Promise.resolve(Float32Array.from(ids, (id) => LOGITS[id]!));
    },
    draw(_row, draw) {
      asked.push("draw");
      return Promise.resolve(drawFromRow(LOGITS.slice(), draw));
    },
  };
  const topIds = Uint32Array.from(rankedIds(LOGITS).slice(0, LISTED));
  const topLogits = Float32Array.from(topIds, (id) => LOGITS[id]!);
  const stats: LogitStats = {
    ...uncertainty(LOGITS),
    max: 0,
    endProbability: 0,
    topIds,
    topLogits,
  };
  const request = { prompt: [0, 3, 900], sampling: { seed: 5n, ...sampling }, maxTokens: 9 };
  const adjuster = new LogitAdjuster(request, new Set());
  const sequence = { adjuster, request, generatedTokens: 0 } as unknown as Sequence;
  const row = new LogitRow(stats, backend as Backend, 0);
  const { token } = await chooseToken(sequence, row, LOGITS.length);
  const u = uniform(request.sampling.seed, 0);
  assertEquals(token, drawByDefinition(adjuster.adjustAll(LOGITS), request.sampling, u));
  return asked;
}

Deno.test("chooseToken asks for no more of a row than what settles the choice", async () => {
  assertEquals(await choose({ temperature: 0 }), []);
  assertEquals(await choose({ temperature: 1 }), []);
  assertEquals(await choose({ temperature: 1, repetitionPenalty: 1.3 }), ["logitsOf"]);
  assertEquals(await choose({ temperature: 1, repetitionPenalty: 0.8 }), ["logitsOf"]);
  assertEquals(await choose({ temperature: 1, presencePenalty: 1 }), []);
  assertEquals(await choose({ temperature: 30 }), ["draw"]);
  assertEquals(await choose({ temperature: 30, repetitionPenalty: 1.3 }), ["logitsOf", "draw"]);
});
