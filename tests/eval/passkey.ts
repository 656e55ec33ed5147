/**
 * Whether pruned attention still finds a needle: five digits hidden in filler text, asked for at its
 * end (Mohtashami and Jaggi, arXiv 2305.16300). The question and the answer attend under the plan, so
 * the filler's own prefill cannot have looked the digits up. Counted are digits, teacher-forced.
 */
import { type AttentionPlan, type Backend, BLOCK_SIZE, DENSE } from "../../core/engine/backend.ts";
import { prefill } from "../../core/host/calibrate/compare.ts";
import type { Tokenizer } from "../../core/model/tokenizer.ts";
import { randomNumbers } from "../support/random.ts";
import { openSubject } from "./subject.ts";

const CONTEXTS = [1024, 2048, 4096, 7168];
/** Share of the context before the passkey. */
const DEPTHS = [0.05, 0.25, 0.5, 0.75, 0.95];
const DIGITS = 5;

const PLANS: readonly AttentionPlan[] = [
  DENSE,
  { kind: "mass", mass: 0.95, minBlocks: 24 },
  { kind: "mass", mass: 0.9, minBlocks: 24 },
  { kind: "mass", mass: 0.8, minBlocks: 24 },
  { kind: "threshold", threshold: 0.001, minBlocks: 24 },
];
/** Blocks of a plan's own for question and answer, beside the filler's. */
const OWN_BLOCKS = 4;

export interface PasskeyResult {
  readonly name: "passkey";
  readonly context: number;
  readonly depth: number;
  readonly plan: AttentionPlan;
  /** Digits found, of 5. */
  readonly digits: number;
  readonly denseDigits: number;
  /** Whether it has every digit that dense attention has. */
  readonly keeps: boolean;
}

/** @param spec As `deno task model` takes it. */
export async function evaluatePasskey(spec: string): Promise<PasskeyResult[]> {
  const kvBlocks = Math.max(...CONTEXTS) / BLOCK_SIZE + PLANS.length * OWN_BLOCKS;
  await using subject = await openSubject(spec, kvBlocks);
  const results: PasskeyResult[] = [];
  for (const [i, context] of CONTEXTS.entries()) {
    for (const [j, depth] of DEPTHS.entries()) {
      const haystack = hide(subject.tokenizer, context, depth, DEPTHS.length * i + j + 1);
      const found = await ask(subject.backend, haystack);
      const [dense = []] = found;
      for (const [index, hits] of found.entries()) {
        const result: PasskeyResult = {
          name: "passkey",
          context,
          depth,
          plan: PLANS[index] as AttentionPlan,
          digits: count(hits),
          denseDigits: count(dense),
          keeps: dense.every((hit, digit) => !hit || hits[digit] === true),
        };
        results.push(result);
        console.error(describe(result));
      }
    }
  }
  return results;
}

const count = (hits: readonly boolean[]) => hits.filter(Boolean).length;

function describe({ context, depth, plan, digits, denseDigits }: PasskeyResult): string {
  const { kind, ...numbers } = plan;
  const name = `${kind} ${Object.values(numbers).join("/")}`;
  return `passkey ${context} depth ${depth} ${
    name.padEnd(18)
  }: ${digits} digits, dense ${denseDigits}`;
}

interface Haystack {
  /** Whole blocks of filler, the passkey among it. */
  readonly filler: Uint32Array;
  readonly question: Uint32Array;
  readonly answer: Uint32Array;
}

const PLACES = ["harbour", "market", "valley", "mill", "orchard", "bridge", "station", "meadow"];
const WHO = ["the baker", "a traveller", "the old teacher", "my neighbour", "the gardener"];
const DID = ["walked to", "came back from", "talked about", "drew a map of", "looked after"];
const WHEN = ["in the morning", "before the rain", "last winter", "every Sunday", "at dusk"];

/** Sentences without end, about nothing. */
function* sentences(random: () => number): Generator<string> {
  const pick = (from: readonly string[]) => from[Math.floor(random() * from.length)] as string;
  while (true) {
    const sentence = `${pick(WHO)} ${pick(DID)} the ${pick(PLACES)} ${pick(WHEN)}.`;
    yield ` ${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;
  }
}

function hide(tokenizer: Tokenizer, context: number, depth: number, seed: number): Haystack {
  const random = randomNumbers(seed);
  const key = Array.from({ length: DIGITS }, () => Math.floor(10 * random())).join("");
  const needle = tokenizer.encode(` The pass key is ${key}. Remember it. ${key} is the pass key.`);
  const parts: number[] = [];
  const more = sentences(random);
  const fill = (length: number) => {
    while (parts.length < length) parts.push(...tokenizer.encode(more.next().value ?? ""));
  };
  const question = tokenizer.encode(" What is the pass key? The pass key is");
  // Whole blocks of filler, so that what follows starts in a block of its plan's own.
  const room = Math.floor((context - question.length - DIGITS - 1) / BLOCK_SIZE) * BLOCK_SIZE;
  fill(depth * room - needle.length);
  parts.push(...needle);
  fill(room);
  return {
    filler: Uint32Array.from(parts.slice(0, room)),
    question,
    answer: tokenizer.encode(` ${key}`),
  };
}

/** Which digits each plan finds, given the digits before. */
async function ask(backend: Backend, { filler, question, answer }: Haystack): Promise<boolean[][]> {
  await prefill(backend, filler, 0);
  const shared = filler.length / BLOCK_SIZE;
  const tables = PLANS.map((_, i) =>
    Array.from(
      { length: shared + OWN_BLOCKS },
      (_, block) => block < shared ? block : block + i * OWN_BLOCKS,
    )
  );
  const asked = [...question, ...answer];
  const hits = PLANS.map((): boolean[] => []);
  for (const [i, token] of asked.slice(0, -1).entries()) {
    const { rows } = await backend.forward(PLANS.map((attention, plan) => ({
      tokens: [token],
      position: filler.length + i,
      blockTable: tables[plan] ?? [],
      attention,
      output: "last",
    })));
    // The space before the first digit may be a token of its own.
    if (i + 1 < asked.length - DIGITS) continue;
    for (const [plan, row] of rows.entries()) hits[plan]?.push(row.topIds[0] === asked[i + 1]);
  }
  return hits;
}
