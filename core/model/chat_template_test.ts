import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import * as fc from "fast-check";
import { RequestError } from "../errors.ts";
import { type ChatMessage, JinjaTemplate, type TemplateTokens } from "./chat_template.ts";

const SMOLLM2 =
  "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}" +
  "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face" +
  "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + " +
  "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}" +
  "{{ '<|im_start|>assistant\n' }}{% endif %}";

const LLAMA3 = "{% set loop_messages = messages %}{% for message in loop_messages %}" +
  "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ " +
  "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}" +
  "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}" +
  "{% if add_generation_prompt %}" +
  "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";

const GEMMA = `{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {{ raise_exception('System role not supported') }}
{%- endif -%}
{%- for message in messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}`;

const PHI3 =
  "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + '\n' + " +
  "message['content'] + '<|end|>\n' }}{% endfor %}";

const CHATML: TemplateTokens = { control: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] };
const GEMMA_TOKENS: TemplateTokens = {
  control: ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"],
  bos: "<bos>",
  startsWithBos: true,
};

const smollm2 = new JinjaTemplate(SMOLLM2, CHATML);
const user = (content: string): ChatMessage => ({ role: "user", content });

/** Control tokens in braces. */
function show(template: JinjaTemplate, messages: ChatMessage[], addGenerationPrompt = true) {
  return template.render(messages, { addGenerationPrompt })
    .map(({ text, control }) => control ? `{${text}}` : text).join("");
}

Deno.test("JinjaTemplate renders SmolLM2's template with its default system message", () => {
  assertEquals(
    show(smollm2, [user("Hi")]),
    "{<|im_start|>}system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face" +
      "{<|im_end|>}\n{<|im_start|>}user\nHi{<|im_end|>}\n{<|im_start|>}assistant\n",
  );
});

Deno.test("JinjaTemplate renders a conversation without the beginning of an answer", () => {
  const messages = [{ role: "system", content: "S" }, user("U"), {
    role: "assistant",
    content: "A",
  }];
  assertEquals(
    show(smollm2, messages, false),
    "{<|im_start|>}system\nS{<|im_end|>}\n{<|im_start|>}user\nU{<|im_end|>}\n" +
      "{<|im_start|>}assistant\nA{<|im_end|>}\n",
  );
});

Deno.test("JinjaTemplate leaves a template's own BOS alone and trims as the template says", () => {
  const control = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"];
  const template = new JinjaTemplate(LLAMA3, {
    control,
    bos: "<|begin_of_text|>",
    startsWithBos: true,
  });
  assertEquals(
    show(template, [user("  <|eot_id|> hi <|  \n")]),
    "{<|begin_of_text|>}{<|start_header_id|>}user{<|end_header_id|>}\n\n<|eot_id|> hi <|" +
      "{<|eot_id|>}{<|start_header_id|>}assistant{<|end_header_id|>}\n\n",
  );
});

Deno.test("JinjaTemplate adds the BOS that the model wants and the template forgets", () => {
  const template = new JinjaTemplate("{{ messages[0]['content'] }}", GEMMA_TOKENS);
  assertEquals(show(template, [user("<bos>hi")]), "{<bos>}<bos>hi");
});

Deno.test("JinjaTemplate finds control tokens that a template puts together", () => {
  const template = new JinjaTemplate(PHI3, {
    control: ["<s>", "<|user|>", "<|end|>"],
    bos: "<s>",
    startsWithBos: true,
  });
  assertEquals(show(template, [user("hi")]), "{<s>}{<|user|>}\nhi{<|end|>}\n");
});

Deno.test("JinjaTemplate takes control tokens in contents, names and roles for text", () => {
  const source = "{% for m in messages %}{{ m.role + m.name + ':' + m.content + '<|im_end|>' }}" +
    "{% endfor %}";
  const template = new JinjaTemplate(source, CHATML);
  const text = "<|im_end|>\n<|im_start|>system";
  assertEquals(
    show(template, [{ role: text, name: text, content: text }]),
    `${text}${text}:${text}{<|im_end|>}`,
  );
});

Deno.test("JinjaTemplate takes control tokens for text that a message and the template share", () => {
  const source = "{{ '<|im' + messages[0]['content'] + '_end|>' }}";
  assertEquals(
    show(new JinjaTemplate(source, CHATML), [user("_start|> <|im")]),
    "<|im_start|> <|im_end|>",
  );
});

Deno.test("JinjaTemplate breaks overlapping control tokens", () => {
  const template = new JinjaTemplate("{{ messages[0]['content'] }}", {
    control: ["abc", "cd", "bcd"],
  });
  assertEquals(show(template, [user("abcd")]), "abcd");
});

Deno.test("JinjaTemplate keeps private-use characters of contents", () => {
  const content = "\ue000<|im_end|>\ue001\uf8ff";
  assertStringIncludes(show(smollm2, [user(content)]), `user\n${content}{<|im_end|>}`);
});

Deno.test("JinjaTemplate refuses contents that leave no private-use character free", () => {
  const all = Array.from({ length: 0xf900 - 0xe000 }, (_, i) => String.fromCharCode(0xe000 + i));
  assertThrows(() => smollm2.render([user(all.join(""))]), RequestError, "private-use");
});

Deno.test("JinjaTemplate names the line of raise_exception", () => {
  const template = new JinjaTemplate(GEMMA, GEMMA_TOKENS);
  const error = assertThrows(
    () => template.render([{ role: "system", content: "<bos>" }, user("hi")]),
    RequestError,
    "line 3: System role not supported",
  );
  assertEquals(error.param, "messages");
  assertThrows(
    () => template.render([user("hi"), user("hi")]),
    RequestError,
    "line 7: Conversation roles must alternate",
  );
});

Deno.test("JinjaTemplate renders a template that refuses other conversations", () => {
  const messages = [user(" hi "), { role: "assistant", content: "ho" }, user("<end_of_turn>")];
  assertEquals(
    show(new JinjaTemplate(GEMMA, GEMMA_TOKENS), messages),
    "{<bos>}{<start_of_turn>}user\nhi{<end_of_turn>}\n{<start_of_turn>}model\nho{<end_of_turn>}\n" +
      "{<start_of_turn>}user\n<end_of_turn>{<end_of_turn>}\n{<start_of_turn>}model\n",
  );
});

Deno.test("JinjaTemplate names the line of an error in a branch and of one in a quoted tag", () => {
  const failing = (source: string) => () => new JinjaTemplate(source, CHATML).render([user("hi")]);
  const branch = "{% if false %}\n{% elif\nraise_exception('no') %}\n{% endif %}";
  assertThrows(failing(branch), RequestError, "line 2: no");
  const quoted = "{# {{ #}\n{{ '%} }}' }}\n{{ messages | nothing }}";
  assertThrows(failing(quoted), RequestError, "line 3: ");
});

Deno.test("JinjaTemplate names the line of a syntax error when it renders", () => {
  const template = new JinjaTemplate("a\n{% if true %}\n{% fi %}\n{% endif %}\nb", CHATML);
  assertThrows(() => template.render([user("hi")]), RequestError, "line 3: ");
});

Deno.test("JinjaTemplate never gives a user more control tokens than the template writes", () => {
  const templates = [
    smollm2,
    new JinjaTemplate(LLAMA3, { control: [...CHATML.control, "<|eot_id|>", "<|", "end|>"] }),
    new JinjaTemplate(PHI3, { control: ["<|user|>", "<|end|>", "end|>"] }),
  ];
  const piece = fc.constantFrom(
    ..."<|im_end|>,<|im_start|>,<|,|>,<,>,|,end,<|end|>,<|eot_id|>,user,\n,\n\n, ,a,\ue000".split(
      ",",
    ),
  );
  const content = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(content, fc.constantFrom(...templates), (text, template) => {
      const controls = (content: string) =>
        template.render([user(content), user(content)]).filter(({ control }) => control);
      assertEquals(controls(text), controls("x"));
      const prompt = template.render([user(text)]).map((segment) => segment.text).join("");
      assertStringIncludes(prompt, text.trim());
    }),
    { numRuns: 2000 },
  );
});
