/**
 * Which line of a chat template an error comes from. The template engine does not say, so this asks
 * it again in smaller pieces; it only runs once there is an error.
 */
import { Template } from "@huggingface/jinja";

/** A comment or a tag; quoted strings inside a tag may hold the characters that end it. */
const TAG =
  /\{#[\s\S]*?#\}|\{([%{])-?(\s*elif\b)?(?:"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|(?![%}]\})[^"'])*[%}]\}/g;

/** The name of the probe, which no template uses. */
const PROBE = "entropic_template_line";

/** The line, from 1 on, where parsing fails: the shortest beginning that fails the same way. */
export function lineOfSyntaxError(source: string): number {
  const lines = source.split("\n");
  const whole = syntaxError(source);
  let [low, high] = [1, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (syntaxError(lines.slice(0, middle).join("\n")) === whole) high = middle;
    else low = middle + 1;
  }
  return low;
}

function syntaxError(source: string): string | undefined {
  try {
    new Template(source);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/**
 * The line, from 1 on, of the tag that was running when rendering failed; `undefined` where no tag
 * fails this time.
 */
export function lineOfRenderError(
  source: string,
  values: Readonly<Record<string, unknown>>,
): number | undefined {
  let line: number | undefined;
  const probe = (number: number) => {
    line = number;
    return "";
  };
  try {
    new Template(withProbes(source)).render({ ...values, [PROBE]: probe });
    return undefined;
  } catch {
    return line;
  }
}

/** Has each tag say its line before it runs. Whitespace may come out otherwise, which is no matter. */
function withProbes(source: string): string {
  let [line, seen] = [1, 0];
  return source.replace(
    TAG,
    (tag, kind: string | undefined, elif: string | undefined, at: number) => {
      line += source.slice(seen, at).split("\n").length - 1;
      seen = at;
      if (kind === undefined) return tag;
      if (elif === undefined) return `{{ ${PROBE}(${line}) }}${tag}`;
      // What stands before `elif` belongs to the branch above, which may not run.
      return tag.replace(/elif\b/, `elif ${PROBE}(${line}) or`);
    },
  );
}
