/// <reference lib="dom" />
// The few lines that a page without a framework needs.

/** The element of a selector, which the page has to have. */
export function find<T extends Element>(selector: string, type: new () => T): T {
  const found = document.querySelector(selector);
  if (found instanceof type) return found;
  throw new TypeError(`Cannot find ${selector}: the page has no such ${type.name}`);
}

/** A new element with a class and a text. */
export function make(tag: string, className: string, text = ""): HTMLElement {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

/** Runs what may fail, and shows by name what went wrong; what was stopped on purpose has not. */
export async function attempt(work: () => void | Promise<void>): Promise<void> {
  const line = find("#error", HTMLElement);
  line.hidden = true;
  line.textContent = "";
  try {
    await work();
  } catch (error) {
    const { name, message } = error as Error;
    if (name === "AbortError") return;
    line.textContent = `${name}: ${message}`;
    line.hidden = false;
  }
}
