/** Builds the prompts of the workloads with the model's own chat template. */
import type { ChatTemplate } from "../../../core/model/chat_template.ts";
import { encodePrompt } from "../../../core/model/chat_template.ts";
import type { Tokenizer } from "../../../core/model/tokenizer.ts";
import { INSTRUCTIONS } from "../scheduling/instructions.ts";
import { mobyDick, typescriptScanner } from "../texts.ts";
import { CODE_QUESTIONS, PROSE_QUESTIONS } from "./questions.ts";
import type { Prompts, WorkloadName } from "./workloads.ts";

/** Encodes what a user says; a template's own words come around it. */
export type EncodeChat = (content: string) => Uint32Array;

export function chatEncoder(tokenizer: Tokenizer, template: ChatTemplate): EncodeChat {
  return (content) =>
    encodePrompt(
      tokenizer,
      template.render([{ role: "user", content }], { addGenerationPrompt: true }),
    );
}

/**
 * @param size Tokens of the document, with what the template writes before it.
 * @throws {RangeError} The document's text has not that many.
 */
export async function promptsOf(
  workload: WorkloadName,
  size: number,
  tokenizer: Tokenizer,
  template: ChatTemplate,
): Promise<Prompts> {
  const chat = chatEncoder(tokenizer, template);
  const alone = () => INSTRUCTIONS.map(chat);
  if (workload === "short-chat") return { document: new Uint32Array(), about: [], alone: alone() };
  const code = workload === "code";
  const text = code ? await typescriptScanner() : await mobyDick();
  const head = commonStart(chat("a"), chat("b"));
  const body = tokenizer.encode(text).subarray(0, size - head.length);
  const document = Uint32Array.of(...head, ...body);
  if (document.length < size) {
    throw new RangeError(`Cannot make a document of ${size} tokens: it has ${document.length}`);
  }
  const about = (code ? CODE_QUESTIONS : PROSE_QUESTIONS)
    .map((question) => chat(`\n\n${question}`).subarray(head.length));
  return { document, about, alone: workload === "mixed" ? alone() : [] };
}

function commonStart(a: Uint32Array, b: Uint32Array): Uint32Array {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length++;
  return a.subarray(0, length);
}
