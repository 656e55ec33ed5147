/** Tokens' entropies, for answers to requests that want them. */
import type { TokenEvent } from "../engine/engine.ts";
import type { Reply } from "./reply.ts";
import type { Trace } from "./schemas/entropic.ts";

/** The field that a choice, or a chunk of one, gets for these tokens. */
export function traceField(
  reply: Reply,
  tokens: readonly TokenEvent[],
): { entropic_trace?: Trace } {
  if (!reply.trace) return {};
  return {
    entropic_trace: tokens.map((event) => ({
      id: event.token,
      entropy: event.entropy,
      varentropy: event.varentropy,
      end_probability: event.endProbability,
      temperature: event.temperature,
      ...(event.attention && { attention: attended(event.attention) }),
    })),
  };
}

function attended({ plan, share }: NonNullable<TokenEvent["attention"]>) {
  return {
    share_read: share,
    ...(plan.kind === "mass" && { mass: plan.mass }),
    ...(plan.kind === "threshold" && { threshold: plan.threshold }),
  };
}
