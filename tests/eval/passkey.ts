/**
 * Whether pruned attention still finds a needle: numbers of five digits hidden at several depths of
 * filler text, asked for at its end (after Mohtashami and Jaggi, arXiv 2305.16300). The question is
 * asked twice: densely, as the engine reads prompts, and under the plan like the answer, so that
 * nothing dense can have looked the number up. Counted are digits, teacher-forced.
 */
import { type AttentionPlan, type Backend, BLOCK_SIZE, DENSE } from "../../core/engine/backend.ts";
import { prefill } from "../../core/host/calibrate/compare.ts";
import type { Tokenizer } from "../../core/model/tokenizer.ts";
import { randomNumbers } from "../support/random.ts";
import { openSubject } from "./subject.ts";

const CONTEXTS = [1024, 2048, 4096, 7168];
/** What has a number, and at which share of the context it is told. */
const SECRETS = {
  "pass key": 0.05,
  "phone number": 0.25,
  "ticket price": 0.5,
  "train code": 0.75,
  "boat weight": 0.95,
};
const DIGITS = 5;

const PLANS: readonly AttentionPlan[] = [
  DENSE,
  ...[0.95, 0.9, 0.85, 0.8, 0.7].map((mass) => ({ kind: "mass", mass, minBlocks: 24 } as const)),
  { kind: "threshold", threshold: 0.001, minBlocks: 24 },
];
/** Blocks of a plan's own for a question and its answer, beside the filler's. */
const OWN_BLOCKS = 4;

export interface PasskeyResult {
  readonly name: "passkey";
  readonly context: number;
  readonly depth: number;
  /** How the question attends; the answer attends under the plan. */
  readonly question: "dense" | "pruned";
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
  const { backend, tokenizer } = subject;
  const results: PasskeyResult[] = [];
  for (const [i, context] of CONTEXTS.entries()) {
    const { filler, questions } = hide(tokenizer, context, i + 1);
    await prefill(backend, filler, 0);
    for (const question of questions) {
      for (const prompt of ["dense", "pruned"] as const) {
        const found = await ask(backend, filler.length, question, prompt);
        const [dense = []] = found;
        for (const [index, hits] of found.entries()) {
          const result: PasskeyResult = {
            name: "passkey",
            context,
            depth: question.depth,
            question: prompt,
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
  }
  return results;
}

const count = (hits: readonly boolean[]) => hits.filter(Boolean).length;

function describe(result: PasskeyResult): string {
  const { context, depth, question, plan, digits, denseDigits } = result;
  const { kind, ...numbers } = plan;
  const name = `${kind} ${Object.values(numbers).join("/")}`;
  const where = `passkey ${context} depth ${depth}, ${question} question`;
  return `${where} ${name.padEnd(18)}: ${digits} digits, dense ${denseDigits}`;
}

interface Question {
  readonly depth: number;
  readonly question: Uint32Array;
  readonly answer: Uint32Array;
}

interface Haystack {
  /** Whole blocks, so that what follows starts in a block of its plan's own. */
  readonly filler: Uint32Array;
  readonly questions: readonly Question[];
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

function hide(tokenizer: Tokenizer, context: number, seed: number): Haystack {
  const random = randomNumbers(seed);
  const length = context - OWN_BLOCKS * BLOCK_SIZE;
  const filler: number[] = [];
  const more = sentences(random);
  const fill = (length: number) => {
    while (filler.length < length) filler.push(...tokenizer.encode(more.next().value ?? ""));
  };
  const questions = Object.entries(SECRETS).map(([name, depth]): Question => {
    fill(depth * length);
    const key = Array.from({ length: DIGITS }, () => Math.floor(10 * random())).join("");
    const needle = ` The ${name} is ${key}. Remember it. The ${name} is ${key}.`;
    filler.push(...tokenizer.encode(needle));
    return {
      depth,
      question: tokenizer.encode(` What is the ${name}? The ${name} is`),
      answer: tokenizer.encode(` ${key}`),
    };
  });
  fill(length);
  return { filler: Uint32Array.from(filler.slice(0, length)), questions };
}

/** Which digits each plan finds, given the digits before. */
async function ask(
  backend: Backend,
  position: number,
  { question, answer }: Question,
  prompt: PasskeyResult["question"],
): Promise<boolean[][]> {
  const shared = position / BLOCK_SIZE;
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
      position: position + i,
      blockTable: tables[plan] ?? [],
      // The question's last token draws the first digit: in the engine it is still of the prompt.
      attention: prompt === "dense" && i < question.length ? DENSE : attention,
      output: "last",
    })));
    // The space before the first digit may be a token of its own.
    if (i + 1 < asked.length - DIGITS) continue;
    for (const [plan, row] of rows.entries()) hits[plan]?.push(row.topIds[0] === asked[i + 1]);
  }
  return hits;
}
