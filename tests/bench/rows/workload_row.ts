/** Rows that are data: one workload, run by this engine and by peers. */
import { type Contender, MissingPeerError, type Workload } from "../contender.ts";
import type { TensorFormat } from "../formats.ts";
import { EntropicTime } from "../ours.ts";
import { openPeer, type PeerName } from "../peers/open.ts";
import type { Bench, Row, Side, Sides } from "../row.ts";

/** A peer, and the tensor format that it is given in place of the row's. */
export interface RowPeer {
  readonly name: PeerName;
  readonly format?: TensorFormat;
}

export interface WorkloadRow {
  readonly name: string;
  readonly about: string;
  readonly workload: Omit<Workload, "model">;
  readonly peers: readonly RowPeer[];
  /** Of the file that both sides read; the model as it is where left out. */
  readonly format?: TensorFormat;
  /** This engine in other settings, by name. */
  readonly others?: Readonly<Record<string, Partial<Omit<Workload, "model">>>>;
  readonly runs?: number;
}

export const NATIVE: readonly RowPeer[] = [{ name: "llama.cpp" }];
/** Each with the format that it is fastest with. */
export const WLLAMA: readonly RowPeer[] = [
  { name: "wllama 2.4.0" },
  { name: "wllama newest", format: "q8_0" },
];

export function workloadRow(row: WorkloadRow): Row {
  const { name, about, workload: { figure }, runs } = row;
  const timed = figure === "load" || figure === "cold-start";
  return {
    name,
    about,
    unit: timed ? "s" : "tokens/s",
    better: timed ? "less" : "more",
    ...(runs !== undefined && { runs }),
    open: (bench) => openSides(row, bench),
  };
}

async function openSides(row: WorkloadRow, bench: Bench): Promise<Sides> {
  const model = row.format ? await bench.converted(row.format) : bench.model;
  const workload: Workload = { ...row.workload, model };
  const [peers, missing]: [Side[], string[]] = [[], []];
  for (const { name, format } of row.peers) {
    try {
      const peer = openPeer(name);
      const path = format ? await bench.converted(format) : model;
      const label = format ? `${peer.name}, ${format}` : peer.name;
      peers.push(sideOf(bench, peer, { ...workload, model: path }, label));
    } catch (error) {
      if (!(error instanceof MissingPeerError)) throw error;
      missing.push(error.message);
    }
  }
  const others = Object.entries(row.others ?? {}).map(([name, changes]) =>
    sideOf(bench, new EntropicTime(), { ...workload, ...changes }, name)
  );
  return { own: sideOf(bench, new EntropicTime(), workload), peers, others, missing };
}

function sideOf(
  bench: Bench,
  contender: Contender,
  workload: Workload,
  name = contender.name,
): Side {
  bench.defer(() => contender.dispose());
  const { warmsUp = false } = contender;
  return { name, warmsUp, measure: () => contender.measure(workload) };
}
