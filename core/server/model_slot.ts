/** Holds the model while it loads, once it is there, or the reason why it will not come. */
import type { LanguageModel } from "../language_model.ts";
import { show } from "../options.ts";
import { unavailable } from "./api_error.ts";

/** A model, one that is on its way, or a function that fetches it when the first request comes. */
export type ModelSource =
  | LanguageModel
  | PromiseLike<LanguageModel>
  | (() => PromiseLike<LanguageModel> | LanguageModel);

export type ModelState =
  | { readonly status: "loading" }
  | { readonly status: "ready"; readonly model: LanguageModel }
  | { readonly status: "failed"; readonly message: string };

/** Seconds after which a client may ask a loading server again. */
const RETRY_AFTER = 2;

export class ModelSlot {
  #state: ModelState = { status: "loading" };
  #load: (() => PromiseLike<LanguageModel> | LanguageModel) | undefined;

  /** @throws {TypeError} It is none of these. */
  constructor(source: ModelSource) {
    if (typeof source === "function") this.#load = source;
    else if (isPromise(source)) this.#wait(source);
    else this.#state = { status: "ready", model: asModel(source) };
  }

  /** Where things stand; starts a load that waits for the first request. */
  get state(): ModelState {
    const load = this.#load;
    if (load !== undefined) {
      this.#load = undefined;
      this.#wait((async () => await load())());
    }
    return this.#state;
  }

  /** @throws {ApiError} 503 while the model loads, with Retry-After, and when it cannot be loaded. */
  get model(): LanguageModel {
    const state = this.state;
    if (state.status === "ready") return state.model;
    if (state.status === "failed") {
      throw unavailable(`Cannot answer: ${state.message}`, "model_failed");
    }
    throw unavailable("Cannot answer yet: the model is loading", "model_loading", RETRY_AFTER);
  }

  #wait(pending: PromiseLike<LanguageModel>): void {
    pending.then(
      (model) => this.#state = { status: "ready", model: asModel(model) },
    ).then(undefined, (error) => {
      const reason = error instanceof Error ? error.message : String(error);
      this.#state = { status: "failed", message: `the model could not be loaded: ${reason}` };
    });
  }
}

function isPromise<T>(source: T | PromiseLike<T>): source is PromiseLike<T> {
  return typeof source === "object" && source !== null && "then" in source;
}

function asModel(given: LanguageModel): LanguageModel {
  if (given?.engine !== undefined && given.tokenizer !== undefined) return given;
  throw new TypeError(
    `Cannot use ${show(given)} as a model: it is what loadModel gives, a promise of that, ` +
      "or a function that gives either",
  );
}
