/**
 * Rotates the queries and keys of a step's tokens (RoPE, arXiv 2104.09864, on pairs of neighbours as
 * GGUF orders them), and stores keys and values in the paged cache; where there is a sketch, the keys'
 * codes as well (`sketch.ts`). A workgroup takes a token and a KV head with its group of queries.
 */
import { BLOCK_SIZE } from "../../core/engine/backend.ts";
import { type Kernel, read, STEP, uniform, write } from "../kernel.ts";
import { kvFunctions, type KvLayout, perWord } from "../kv_layout.ts";
import { CODE_TOKENS, codeWords } from "../sketch.ts";
import { TOKEN } from "../step_input.ts";

export interface RotateParameters {
  readonly heads: number;
  readonly kv: KvLayout;
  /** Dimensions that are rotated, even. */
  readonly rotated: number;
  /** Dimensions of a code; 0 without a sketch. */
  readonly dimensions: number;
}

const WORKGROUP = 64;

/** Dispatch: [KV heads, tokens]. */
export function rotateKernel(parameters: RotateParameters): Kernel {
  const { heads, kv, rotated, dimensions } = parameters;
  const { kvHeads, headSize } = kv;
  const group = heads / kvHeads;
  const width = (heads + 2 * kvHeads) * headSize;
  const sketched = dimensions > 0;
  return {
    name: `rotate ${heads}/${kvHeads}x${headSize} ${kv.type} ${rotated} ${dimensions}`,
    bindings: [
      uniform("step", "Step"),
      read("tokens", "array<Token>"),
      read("tables", "array<u32>"),
      read("angles", "array<vec2<f32>>"),
      write("qkv", "array<f32>"),
      write("cache", "array<u32>"),
      ...(sketched ? [read("sketch", "array<f32>"), write("codes", "array<u32>")] : []),
    ],
    code: `
${STEP}${TOKEN}${kvFunctions(kv)}
var<workgroup> key: array<f32, ${headSize}>;

/** Dimensions 2 pair and 2 pair + 1 of the head that begins at \`head\`, rotated. */
fn rotated(head: u32, pair: u32, token: u32) -> vec2<f32> {
  let x = vec2<f32>(qkv[head + 2u * pair], qkv[head + 2u * pair + 1u]);
  if (pair >= ${rotated / 2}u) {
    return x;
  }
  let turn = angles[token * ${rotated / 2}u + pair];
  return vec2<f32>(
    fma(x.x, turn.x, -(x.y * turn.y)),
    fma(x.x, turn.y, x.y * turn.x),
  );
}

@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let kv_head = workgroup.x;
  let token = workgroup.y;
  if (token >= step.count) {
    return;
  }
  let row = token * ${width}u;
  for (var i = thread; i < ${group * headSize / 2}u; i += ${WORKGROUP}u) {
    let head = row + (kv_head * ${group}u + i / ${headSize / 2}u) * ${headSize}u;
    let pair = i % ${headSize / 2}u;
    let x = rotated(head, pair, token);
    qkv[head + 2u * pair] = x.x;
    qkv[head + 2u * pair + 1u] = x.y;
  }
  let position = tokens[token].position;
  let block = tables[tokens[token].table + position / ${BLOCK_SIZE}u];
  let slot = position % ${BLOCK_SIZE}u;
  let record = record_at(block, kv_head);
  let key_head = row + ${heads * headSize}u + kv_head * ${headSize}u;
  let value_head = key_head + ${kvHeads * headSize}u;
  for (var pair = thread; pair < ${headSize / 2}u; pair += ${WORKGROUP}u) {
    let k = rotated(key_head, pair, token);
    let v = vec2<f32>(qkv[value_head + 2u * pair], qkv[value_head + 2u * pair + 1u]);
    ${
      perWord(kv.type) === 2
        ? `
    cache[key_at(record, slot, pair)] = pack2x16float(k);
    cache[value_at(record, slot, pair)] = pack2x16float(v);`
        : `
    cache[key_at(record, slot, 2u * pair)] = bitcast<u32>(k.x);
    cache[key_at(record, slot, 2u * pair + 1u)] = bitcast<u32>(k.y);
    cache[value_at(record, slot, 2u * pair)] = bitcast<u32>(v.x);
    cache[value_at(record, slot, 2u * pair + 1u)] = bitcast<u32>(v.y);`
    }
    key[2u * pair] = k.x;
    key[2u * pair + 1u] = k.y;
  }
  ${sketched ? writeCodes(parameters) : ""}
}
`,
  };
}

/** A thread makes the word of eight of the code's dimensions. */
function writeCodes({ kv: { headSize, kvHeads }, dimensions }: RotateParameters): string {
  const map = dimensions * headSize;
  return `
  workgroupBarrier();
  if (thread >= ${dimensions / 8}u) {
    return;
  }
  var word = 0u;
  for (var i = 0u; i < 8u; i++) {
    let dimension = kv_head * ${dimensions}u + 8u * thread + i;
    var x = 0.0;
    for (var j = 0u; j < ${headSize}u; j++) {
      x = fma(sketch[dimension * ${headSize}u + j], key[j], x);
    }
    x = clamp(round(x - sketch[${kvHeads * map}u + dimension]), -7.0, 7.0);
    word |= u32(i32(x) + 8) << (4u * i);
  }
  codes[((block * ${kvHeads}u + kv_head) * ${
    codeWords(dimensions)
  }u + thread) * ${CODE_TOKENS}u + slot] = word;`;
}
