/** Where the peers lie: a cache folder of their own, which `ENTROPIC_PEERS` moves. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { INSTALL_HINT, MissingPeerError } from "../contender.ts";

export function peersFolder(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  return process.env.ENTROPIC_PEERS ?? join(cache, "entropic-time", "peers");
}

/** A file or folder of a peer. @throws {MissingPeerError} It is not installed. */
export function peerPath(peer: string, ...parts: readonly string[]): string {
  const path = join(peersFolder(), ...parts);
  if (!existsSync(path)) throw new MissingPeerError(`Cannot find ${peer}: ${INSTALL_HINT}`);
  return path;
}
