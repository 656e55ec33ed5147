/** The peers by name. */
import type { Contender } from "../contender.ts";
import { LlamaCpp } from "./llama_cpp.ts";
import { NodeLlamaCpp } from "./node_llama_cpp.ts";
import { WllamaPeer } from "./wllama.ts";

const PEERS = {
  "llama.cpp": () => new LlamaCpp(),
  "node-llama-cpp": () => new NodeLlamaCpp(),
  "wllama 2.4.0": () => new WllamaPeer("2.4.0"),
  "wllama newest": () => new WllamaPeer("newest"),
} as const satisfies Record<string, () => Contender>;

export type PeerName = keyof typeof PEERS;

/** @throws {MissingPeerError} It is not installed. */
export function openPeer(name: PeerName): Contender {
  return PEERS[name]();
}
