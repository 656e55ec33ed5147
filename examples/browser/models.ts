/// <reference lib="dom" />
// Where models come from: a URL, a file, or what this browser has kept of either.
import {
  type BlobSource,
  type KeepOptions,
  OpfsStore,
  type StoredModel,
  type TransferProgress,
} from "../../mod.ts";
import { attempt, find, make } from "./dom.ts";

const choices = find("#choices", HTMLElement);
const transfer = find("#transfer", HTMLElement);
const bar = find("#transfer progress", HTMLProgressElement);
const cancel = find("#transfer button", HTMLButtonElement);

/** Fills the panel of models; `run` gets the one that the user wants. */
export async function showModels(run: (source: BlobSource) => Promise<void>): Promise<void> {
  const store = await OpfsStore.open();

  const list = async () => {
    const rows = (await store.list()).map(row);
    find("#stored", HTMLUListElement).replaceChildren(...rows);
  };

  /** One thing at a time: what is under way can be cancelled, and nothing else be chosen. */
  const doAlone = (work: (options: KeepOptions) => Promise<void>) =>
    attempt(async () => {
      const stop = new AbortController();
      cancel.onclick = () => stop.abort();
      choices.inert = true;
      try {
        await work({ signal: stop.signal, onProgress: showProgress });
      } finally {
        choices.inert = false;
        transfer.hidden = true;
        await list();
      }
    });

  const fetch = (url: string) =>
    doAlone(async (options) => await run(await store.fetch(url, options)));

  const row = ({ name, complete, url, bytes, size }: StoredModel) => {
    const button = (text: string, onclick: () => void) =>
      Object.assign(make("button", "", text), { onclick });
    const item = make("li", "row");
    const missing = complete ? "" : `${megabytes(bytes)} of `;
    item.append(make("span", "name", name), make("span", "quiet", missing + megabytes(size)));
    if (complete) {
      item.append(button("Run", () => doAlone(async () => await run(await store.open(name)))));
    } else if (url !== undefined) item.append(button("Go on", () => fetch(url)));
    item.append(button("Delete", () => doAlone(() => store.delete(name))));
    return item;
  };

  find("#fetch", HTMLFormElement).onsubmit = (event) => {
    event.preventDefault();
    fetch(find("#fetch input", HTMLInputElement).value);
  };
  const picker = find("#file", HTMLInputElement);
  picker.onchange = () => {
    const [file] = picker.files ?? [];
    if (file) doAlone(async (options) => await run(await store.add(file, options)));
  };
  await list();
  choices.inert = false;
}

function showProgress({ bytes, total, bytesPerSecond, done }: TransferProgress): void {
  transfer.hidden = done;
  if (total) bar.value = bytes / total;
  else bar.removeAttribute("value"); // a bar that only shows that something happens
  find("#transfer output", HTMLOutputElement).value = `${megabytes(bytes)} of ${
    megabytes(total)
  }, ${megabytes(bytesPerSecond)}/s`;
}

const megabytes = (bytes?: number) => bytes === undefined ? "?" : `${(bytes / 1e6).toFixed(1)} MB`;
