/** What `/metrics` tells: requests and latencies seen here, the engine's own counts when asked. */
import type { AttentionState, EngineStats, SequenceEvent } from "../engine/engine.ts";
import type { LanguageModel } from "../language_model.ts";
import type { EventObserver } from "./generation.ts";
import { Registry } from "./prometheus.ts";

const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const FIRST_TOKEN_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const INTER_TOKEN_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export class ServerMetrics {
  #registry = new Registry();
  #requests = this.#registry.counter(
    "entropic_http_requests_total",
    "Requests answered, streams counted at their end",
  );
  #seconds = this.#registry.histogram(
    "entropic_http_request_duration_seconds",
    "From the request's arrival to the end of its answer",
    REQUEST_SECONDS,
  );
  #firstToken = this.#registry.histogram(
    "entropic_time_to_first_token_seconds",
    "From the request's arrival to the first token of each choice",
    FIRST_TOKEN_SECONDS,
  );
  #interToken = this.#registry.histogram(
    "entropic_inter_token_seconds",
    "Between two tokens of a choice, as its reader takes them",
    INTER_TOKEN_SECONDS,
  );

  countRequest(route: string, status: number, seconds: number): void {
    this.#requests.add({ route, status: String(status) });
    this.#seconds.observe(seconds, { route });
  }

  /** @param arrival Of the request, on `performance.now()`'s clock, like `now`. */
  tokenObserver(arrival: number, now: () => number = () => performance.now()): EventObserver {
    const last = new Map<number, number>();
    return (index: number, event: SequenceEvent) => {
      if (event.type !== "token") return;
      const time = now();
      const before = last.get(index);
      if (before === undefined) this.#firstToken.observe((time - arrival) / 1000);
      else this.#interToken.observe((time - before) / 1000);
      last.set(index, time);
    };
  }

  /** The page. Without a model, or while its engine does not answer, only what is known here. */
  async render(model: LanguageModel | undefined): Promise<string> {
    const page = new Registry();
    const stats = await model?.engine.stats().catch(() => undefined);
    page.gauge("entropic_ready", "1 when requests can be answered").set(stats ? 1 : 0);
    if (model !== undefined && stats !== undefined) {
      describeModel(page, model, stats);
      describeSequences(page, stats);
      describeCache(page, stats);
      describeWork(page, stats);
      describeAttention(page, stats.attention);
    }
    return this.#registry.toString() + page.toString();
  }
}

function describeModel(page: Registry, model: LanguageModel, stats: EngineStats): void {
  const { backend, entropyFloor, policy } = model.engine.info;
  page.gauge("entropic_model_info", "The model served, always 1").set(1, {
    model: model.id,
    backend: backend.kind,
    variant: backend.variant,
    policy,
  });
  page.counter("entropic_backend_rebuilds_total", "Times that a lost backend was replaced")
    .set(stats.rebuilds);
  page.gauge("entropic_weight_bytes", "Weights in the backend's memory").set(backend.weightBytes);
  page.gauge("entropic_kv_bytes", "KV cache in the backend's memory").set(backend.kvBytes);
  page.gauge("entropic_entropy_floor_nats", "What lies below it adds nothing to tau")
    .set(entropyFloor);
}

function describeSequences(page: Registry, stats: EngineStats): void {
  const sequences = page.gauge("entropic_sequences", "Sequences in the engine, by state");
  sequences.set(stats.waiting, { state: "waiting" });
  sequences.set(stats.running, { state: "running" });
  sequences.set(stats.preempted, { state: "preempted" });
  const finished = page.counter(
    "entropic_sequences_finished_total",
    "Sequences, by how they ended",
  );
  for (const [reason, count] of Object.entries(stats.finished)) finished.set(count, { reason });
  page.counter("entropic_preemptions_total", "Times that a running sequence had to make room")
    .set(stats.preemptions);
}

function describeCache(page: Registry, stats: EngineStats): void {
  const used = stats.kvBlocksTotal - stats.kvBlocksFree;
  const blocks = page.gauge("entropic_kv_blocks", "KV blocks of 16 tokens, by state");
  blocks.set(used, { state: "used" });
  blocks.set(stats.kvBlocksCached, { state: "cached" });
  blocks.set(stats.kvBlocksFree - stats.kvBlocksCached, { state: "free" });
  page.gauge("entropic_kv_usage_ratio", "KV blocks in use, as a share of all")
    .set(stats.kvBlocksTotal > 0 ? used / stats.kvBlocksTotal : 0);
  page.counter("entropic_prefix_cache_tokens_total", "Prompt tokens found in the prefix cache")
    .set(stats.cachedTokens);
}

function describeWork(page: Registry, stats: EngineStats): void {
  page.counter("entropic_prompt_tokens_total", "Prompt tokens taken in").set(stats.promptTokens);
  page.counter("entropic_generated_tokens_total", "Tokens generated").set(stats.generatedTokens);
  page.counter("entropic_tau_nats_total", "Entropic time over all sequences").set(stats.tau);
  page.counter("entropic_flops_total", "Floating-point operations, by the model's shape")
    .set(stats.cost.flops);
  page.counter("entropic_weight_read_bytes_total", "Weights read, once a step")
    .set(stats.cost.weightBytes);
  page.counter("entropic_kv_read_bytes_total", "KV cache read by attention")
    .set(stats.cost.kvBytes);
  page.counter("entropic_steps_total", "Engine steps").set(stats.steps);
  page.counter("entropic_forward_seconds_total", "Time inside the backend's forward pass")
    .set(stats.forwardSeconds);
  page.counter("entropic_overhead_seconds_total", "Time in steps outside the forward pass")
    .set(stats.overheadSeconds);
}

function describeAttention(page: Registry, state: AttentionState): void {
  const { totals } = state;
  page.gauge("entropic_attention_policy_info", "Policy of requests that name none, always 1")
    .set(1, { policy: state.policy });
  for (
    const [unit, help, spent, dense] of [
      ["blocks", "KV blocks, over layers and KV heads", totals.blocksRead, totals.blocksTotal],
      ["bytes", "Bytes of keys, values and sketches", totals.bytesRead, totals.bytesTotal],
      ["macs", "Multiply-adds of scan, QK and PV", totals.macs, totals.macsTotal],
    ] as const
  ) {
    const counter = page.counter(
      `entropic_attention_${unit}_total`,
      `${help}: those spent, and those of dense attention`,
    );
    counter.set(spent, { of: "spent" });
    counter.set(dense, { of: "dense" });
  }
  page.counter("entropic_attention_pruned_steps_total", "Tokens that attended by a pruned plan")
    .set(totals.prunedSteps);
  page.gauge("entropic_attention_mass_dropped", "Mean share of the attention left out by them")
    .set(totals.massDropped);
  describeSafeguards(page, state);
}

function describeSafeguards(page: Registry, state: AttentionState): void {
  page.gauge(
    "entropic_attention_divergence_bound_nats",
    "KL from dense that is allowed, in the mean",
  )
    .set(state.bound);
  page.gauge("entropic_attention_divergence_nats", "KL from dense, mean of the shadow steps")
    .set(state.divergence);
  page.counter("entropic_attention_shadows_total", "Dense steps run beside pruned ones")
    .set(state.shadows);
  page.counter("entropic_attention_shadow_seconds_total", "Time in them").set(state.shadowSeconds);
  const mass = page.gauge("entropic_attention_mass", "Held for contexts from so many tokens on");
  for (const one of state.lengths) mass.set(one.mass, { from: String(one.length) });
}
