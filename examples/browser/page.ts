/// <reference lib="dom" />
// A chat with a model that runs in this browser: the engine in a Worker, the page in this thread.
import {
  type BackendName,
  BACKENDS,
  type BlobSource,
  type ChatMessage,
  generate,
  type LanguageModel,
  loadModel,
} from "../../mod.ts";
import { Answer } from "./answer.ts";
import { attempt, find, make } from "./dom.ts";
import { showModels } from "./models.ts";

const status = find("#status", HTMLElement);
const backend = find("#backend", HTMLSelectElement);
const messages = find("#messages", HTMLElement);
const form = find("#ask", HTMLFormElement);
const input = find("#ask textarea", HTMLTextAreaElement);
const send = find("#ask button", HTMLButtonElement);
const fresh = find("#fresh", HTMLButtonElement);

let model: LanguageModel | undefined;
let conversation: ChatMessage[] = [];
let answering: AbortController | undefined;

function newConversation(): void {
  conversation = [];
  messages.replaceChildren();
}

/** Starts a model and a new conversation. */
async function run(source: BlobSource): Promise<void> {
  await model?.engine.dispose();
  model = undefined;
  newConversation();
  status.textContent = `Starting ${source.name} …`;
  try {
    model = await loadModel({
      model: [source],
      worker: true,
      backend: backend.value as BackendName,
      threads: Math.min(4, navigator.hardwareConcurrency), // 1 where the page is not isolated
    });
  } finally {
    input.disabled = send.disabled = fresh.disabled = model === undefined;
    status.textContent = describe(model);
  }
}

function describe(model: LanguageModel | undefined): string {
  if (model === undefined) return "No model is running";
  const { kind, variant, threads } = model.engine.info.backend;
  return `${model.id} on ${kind} (${variant}${threads > 1 ? ` × ${threads}` : ""})`;
}

async function ask(model: LanguageModel, question: string): Promise<void> {
  const asked = [...conversation, { role: "user", content: question }];
  const answer = new Answer();
  messages.append(make("article", "card question", question), answer.element);
  answering = new AbortController();
  send.textContent = "Stop";
  fresh.disabled = true;
  try {
    const tokens = generate(model, asked, {
      maxTokens: Math.min(512, model.engine.info.maxSequenceTokens >> 1),
      temperature: 0.7,
      seed: BigInt(Date.now()),
      signal: answering.signal,
    });
    for await (const token of tokens) {
      answer.push(token);
      scrollTo(0, document.body.scrollHeight);
    }
  } finally {
    answering = undefined;
    send.textContent = "Send";
    fresh.disabled = false;
    if (answer.text) conversation = [...asked, { role: "assistant", content: answer.text }];
  }
}

form.onsubmit = (event) => {
  event.preventDefault();
  if (answering !== undefined) return answering.abort();
  const [running, question] = [model, input.value.trim()];
  if (running === undefined || question === "") return;
  input.value = "";
  attempt(() => ask(running, question));
};
fresh.onclick = () => attempt(newConversation);
input.onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (answering === undefined) form.requestSubmit();
};
backend.append(...BACKENDS.map((name) => new Option(name)));
attempt(() => showModels(run));
