/** Holds the model while it loads, once it is there, or the reason why it will not come. */
import type { LanguageModel } from "../language_model.ts";
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

  constructor(source: ModelSource) {
    if (typeof source === "function") this.#load = source;
    else if ("then" in source) this.#wait(source);
    else this.#state = { status: "ready", model: source };
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
      (model) => this.#state = { status: "ready", model },
      (error) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.#state = { status: "failed", message: `the model could not be loaded: ${reason}` };
      },
    );
  }
}
