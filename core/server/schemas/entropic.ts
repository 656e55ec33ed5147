/** The extension object `entropic`: what a request may choose, and what an answer tells. */
import { z } from "@hono/zod-openapi";
import { TEMPERATURE_LAWS } from "../../entropic/temperature.ts";
import { boolean, number } from "./fields.ts";

const LAWS = ["off", ...TEMPERATURE_LAWS] as const;
const LAW = `one of ${LAWS.join(", ")}`;

/** An object that takes these fields and no other. */
function only<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: `an object with no other fields than ${Object.keys(shape).join(", ")}`,
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

export const entropicRequestSchema = only({
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
}).openapi("Entropic");

export type Entropic = z.infer<typeof entropicSchema>;

export const traceSchema = z.array(z.object({
  id: z.int(),
  entropy: z.number(),
  varentropy: z.number(),
  end_probability: z.number(),
  temperature: z.number(),
})).openapi("EntropicTrace", {
  description: "One entry a token: entropy in nats, varentropy, and probability of ending of the " +
    "model's own distribution; the temperature drawn with.",
});

export type Trace = z.infer<typeof traceSchema>;
