/** The extension object `entropic`: what a request may choose, and what an answer tells. */
import { z } from "@hono/zod-openapi";
import { ATTENTION_POLICIES, type AttentionPolicy } from "../../entropic/pruning.ts";
import { TEMPERATURE_LAWS } from "../../entropic/temperature.ts";
import { boolean, integer, number } from "./fields.ts";

const LAWS = ["off", ...TEMPERATURE_LAWS] as const;
const POLICY = `one of ${ATTENTION_POLICIES.join(", ")}`;
const MOST_BLOCKS = 2 ** 24;
const LAW = `one of ${LAWS.join(", ")}`;

/** An object that takes these fields and no other. */
function only<Shape extends z.ZodRawShape>(shape: Shape) {
  const fields = Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: ({ code }) =>
      code === "unrecognized_keys" ? fields : `an object with no other fields than ${fields}`,
  });
}

const temperatureSchema = only({
  law: z.enum(LAWS, { error: LAW }).openapi({
    description: "How the temperature follows entropy. off (the default): not at all.",
  }),
  target: number(0, 20, "a number of nats from 0 to 20").nullish().openapi({
    description: "Entropy to hold. Default 1.",
  }),
  eta: number(Number.MIN_VALUE, 10, "a number above 0 and at most 10").nullish().openapi({
    description: "Change of log T for each nat of error. Default 0.05, under seed-leaky 0.01.",
  }),
  leak: number(Number.MIN_VALUE, 1, "a number above 0 and at most 1").nullish().openapi({
    description: "seed-leaky: share of the way back to the first temperature. Default 0.1.",
  }),
  kappa: number(Number.MIN_VALUE, 0.999, "a number above 0 and at most 0.999").nullish().openapi({
    description: "stabilized: bound of eta times varentropy. Default 0.5.",
  }),
  min: number(0.01, 100, "a number from 0.01 to 100").nullish().openapi({
    description: "Lowest temperature. Default 0.1.",
  }),
  max: number(0.01, 100, "a number from 0.01 to 100").nullish().openapi({
    description: "Highest temperature. Default 2.",
  }),
});

/** Fields that would change nothing under the other policies. */
const POLICIES_WITH: Readonly<
  Record<"mass" | "min_blocks" | "gain" | "threshold", readonly AttentionPolicy[]>
> = { mass: ["mass"], min_blocks: ["mass", "paper"], gain: ["mass"], threshold: ["paper"] };

const attentionSchema = only({
  policy: z.enum(ATTENTION_POLICIES, { error: POLICY }).openapi({
    description:
      "How generated tokens attend to long contexts: off, to all of it; mass, to the KV " +
      "blocks that hold most of the attention; paper, to those above a threshold that rises as " +
      "entropy falls. The server's own policy where attention is left out.",
  }),
  mass: number(Number.MIN_VALUE, 1, "a number above 0 and at most 1").nullish().openapi({
    description: "mass: share of the attention to keep. Left out, the server holds it by a bound " +
      "of the divergence from dense; answers may then differ from time to time.",
  }),
  min_blocks: integer(1, MOST_BLOCKS, `an integer from 1 to ${MOST_BLOCKS}`).nullish().openapi({
    description: "mass and paper: blocks of 16 tokens that are read at least. Default 24.",
  }),
  gain: number(-1, 1, "a number from -1 to 1").nullish().openapi({
    description: "mass: added to it for each nat of the last entropy above its mean. Default 0.",
  }),
  threshold: number(0, 1, "a number from 0 to 1").nullish().openapi({
    description: "paper: share of the attention below which a block is dropped when entropy is 0.",
  }),
}).superRefine((given, context) => {
  for (const [field, policies] of Object.entries(POLICIES_WITH)) {
    const value = given[field as keyof typeof POLICIES_WITH];
    if (value == null || policies.includes(given.policy)) continue;
    const message = `null unless policy is ${policies.join(" or ")}`;
    context.addIssue({ code: "custom", path: [field], message });
  }
});

const TARGET = "a number of seconds above 0 and at most 1000000";

export const entropicRequestSchema = only({
  attention: attentionSchema.nullish().openapi({
    description: "The server has floors for mass and min_blocks; a refusal names them.",
  }),
  latency_target: number(Number.MIN_VALUE, 1e6, TARGET).nullish().openapi({
    description:
      "Seconds from arrival to the last token that the client hopes for; for scheduling.",
  }),
  temperature: temperatureSchema.nullish().openapi({
    description: "Starts at the request's temperature, which must not be 0 then.",
  }),
  trace: boolean().nullish().openapi({ description: "Adds entropic_trace to each choice." }),
}).openapi("EntropicRequest");

export type EntropicRequest = z.infer<typeof entropicRequestSchema>;

export const entropicSchema = z.object({
  tau: z.number().openapi({
    description: "Entropic time: nats of entropy removed, summed over the choices.",
  }),
  entropy_floor: z.number().optional().openapi({
    description: "Nats; what lies below it adds nothing to tau. Only where it is above 0.",
  }),
  mean_entropy: z.number().openapi({ description: "Nats a generated token." }),
  cost: z.object({
    flops: z.number(),
    weight_bytes: z.number(),
    kv_bytes: z.number(),
    seconds: z.number(),
  }).openapi({ description: "The answer's share of the steps that it was part of." }),
  dtau_dc: z.object({
    nats_per_second: z.number(),
    nats_per_gflop: z.number(),
    nats_per_gbyte: z.number(),
  }).openapi({ description: "tau over cost; 1 GB is 10^9 bytes, of weights and KV." }),
  temperature: z.object({
    law: z.enum(TEMPERATURE_LAWS),
    mean: z.number(),
    rail_share: z.number().openapi({ description: "Share of tokens at min or max." }),
    mean_entropy: z.number().openapi({ description: "At the temperature drawn with." }),
    entropy_deviation: z.number(),
    mean_varentropy: z.number(),
    mean_gain: z.number().openapi({ description: "Mean of eta times varentropy." }),
  }).optional().openapi({ description: "Only where a law steered it." }),
  attention: z.object({
    policy: z.enum(ATTENTION_POLICIES).openapi({
      description: "In force at the end: off where the server had turned the policy off.",
    }),
    share_read: z.number().openapi({ description: "Bytes, of those that dense attention reads." }),
    share_macs: z.number().openapi({ description: "Multiply-adds, of those of dense attention." }),
    blocks_read: z.int().openapi({ description: "Over tokens, layers and KV heads." }),
    blocks_total: z.int(),
    mass_dropped: z.number().openapi({ description: "Mean over pruned steps, as estimated." }),
    pruned_steps: z.int(),
    steps: z.int(),
  }).optional().openapi({
    description: "What generated tokens attended to; only where attention is not off by choice.",
  }),
}).openapi("Entropic");

export type Entropic = z.infer<typeof entropicSchema>;

export const traceSchema = z.array(z.object({
  id: z.int(),
  entropy: z.number(),
  varentropy: z.number(),
  end_probability: z.number(),
  temperature: z.number(),
  attention: z.object({
    share_read: z.number(),
    mass: z.number().optional(),
    threshold: z.number().optional(),
  }).optional(),
})).openapi("EntropicTrace", {
  description: "One entry a token: entropy in nats, varentropy, and probability of ending of the " +
    "model's own distribution; the temperature drawn with; how the step attended.",
});

export type Trace = z.infer<typeof traceSchema>;
