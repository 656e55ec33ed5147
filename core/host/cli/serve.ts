/** `deno task serve`: an OpenAI-compatible server on a model, fetched first where it is missing. */
import process from "node:process";
import { entropic, loadModel, POLICIES, type PolicyName } from "../../../mod.ts";
import { ATTENTION_FLOOR } from "../../entropic/pruning.ts";
import type { AccessEntry } from "../../server/exchange.ts";
import { serve } from "../serve/serve.ts";
import { ATTENTION_OPTIONS, attentionSettings } from "./attention_options.ts";
import { loadOptions, MODEL_OPTIONS } from "./model_options.ts";
import { type Arguments, type Command, runCommand } from "./options.ts";

const COMMAND = {
  usage: "serve",
  about: "Serves a model over an OpenAI-compatible HTTP API.",
  options: {
    port: { value: "N", help: "where to listen (default 8000; 0 takes any free one)" },
    host: { value: "H", help: "address to listen on (default 127.0.0.1)" },
    ...MODEL_OPTIONS,
    "api-key": {
      value: "K",
      help: "key that clients must send (else ENTROPIC_API_KEY, else none)",
    },
    "max-waiting": { value: "N", help: "requests that may wait before 503 (default 1024)" },
    policy: { value: "P", help: `who runs first: ${POLICIES.join(", ")} (default fcfs)` },
    tail: {
      value: "W",
      help: "waits that the policy accepts for the mean, in long answers' time (default 100)",
    },
    ...ATTENTION_OPTIONS,
    "least-mass": { value: "M", help: "least share that a request may ask for (default 0.5)" },
    "entropy-floor": {
      value: "NATS",
      help: "entropy below it removes nothing in entropic time (default 0)",
    },
    "no-worker": { help: "run the engine in the server's own thread, as on edge hosts" },
    quiet: { help: "no access log" },
    help: { help: "show this help" },
  },
  operands: [0, 0],
} as const satisfies Command<string>;

async function main(given: Arguments<keyof typeof COMMAND.options>): Promise<void> {
  const apiKey = given.text("api-key") ?? process.env["ENTROPIC_API_KEY"];
  const policy = given.text("policy");
  if (policy !== undefined && !isPolicy(policy)) {
    throw new RangeError(`Cannot use --policy "${policy}": it takes ${POLICIES.join(", ")}`);
  }
  const tail = given.number("tail", 1e-3, 1e6);
  const leastMass = given.number("least-mass", ATTENTION_FLOOR.mass, 1);
  const attention = {
    ...attentionSettings(given),
    ...(leastMass !== undefined && { leastMass }),
  };
  const entropyFloor = given.number("entropy-floor", 0, Number.MAX_VALUE);
  const maxWaiting = given.integer("max-waiting", 1, 2 ** 24);
  const port = given.integer("port", 0, 65535);
  const interrupt = new AbortController();
  onInterrupt(() => interrupt.abort(new Error("interrupted")));
  const loading = loadModel({
    ...loadOptions(given),
    signal: interrupt.signal,
    ...(maxWaiting !== undefined && { maxWaiting }),
    ...(policy !== undefined && { policy }),
    ...(tail !== undefined && { tail }),
    attention,
    ...(entropyFloor !== undefined && { entropyFloor }),
    worker: !given.flag("no-worker"),
  });
  const app = entropic({
    model: loading,
    ...(apiKey ? { apiKeys: [apiKey] } : {}),
    ...(given.flag("quiet") ? {} : { logger: logAccess }),
  });
  const hostname = given.text("host");
  // The port is bound at once, so that /health tells of the loading and a busy port shows early.
  const server = await serve(app, {
    ...(port !== undefined && { port }),
    ...(hostname !== undefined && { hostname }),
    signal: interrupt.signal,
    onDeadline: async () => await (await loading).engine.dispose(),
  });
  console.error(`Loading the model; ${server.url}/health says when it is ready`);
  const model = await loading;
  const { backend: { kind, variant, threads }, policy: order, ...info } = model.engine.info;
  console.error(
    `${model.id} on ${kind} (${variant}, ${threads} thread${threads > 1 ? "s" : ""}), ` +
      `context ${info.maxSequenceTokens}, policy ${order}, attention ${info.attention.policy}`,
  );
  if (!interrupt.signal.aborted) console.log(`Serving on ${server.url}`);
  await server.stopped;
  await model.engine.dispose();
}

/** The first signal ends a download or lets running answers finish, the second ends the process. */
function onInterrupt(stop: () => void): void {
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(130);
      stopping = true;
      stop();
    });
  }
}

function isPolicy(name: string): name is PolicyName {
  return (POLICIES as readonly string[]).includes(name);
}

function logAccess(entry: AccessEntry): void {
  console.error(JSON.stringify(entry));
}

await runCommand(COMMAND, main);
process.exit(0);
