/**
 * Mutates a good model file some thousand times. Each mutant opens as a model whose every tensor
 * lies inside the file, or is refused with a `ModelError`; nothing else may happen.
 */
import { assert, assertGreater } from "@std/assert";
import { ModelError } from "../../core/errors.ts";
import { readHeader } from "../../core/model/gguf/header.ts";
import { type OpenedModel, openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { concat, u32Bytes, u64Bytes } from "../support/gguf_writer.ts";
import { randomNumbers } from "../support/random.ts";
import { tinyModel } from "../support/tiny_model.ts";

const MUTANTS = 6000;

/** Numbers at which sizes overflow, wrap, turn negative or lose their last bit. */
const EDGES = [
  0n,
  1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 40n,
  2n ** 53n + 1n,
  2n ** 63n,
  2n ** 64n - 1n,
];

type Random = () => number;

const below = (limit: number, random: Random) => Math.floor(random() * limit);

/** One change somewhere in the first `reach` bytes. */
function mutate(file: Uint8Array, reach: number, random: Random): Uint8Array {
  const at = below(reach, random);
  const edge = EDGES[below(EDGES.length, random)] ?? 0n;
  const before = file.subarray(0, at);
  switch (below(6, random)) {
    case 0: // Flip a bit.
      return concat([
        before,
        Uint8Array.of(file[at]! ^ (1 << below(8, random))),
        file.subarray(at + 1),
      ]);
    case 1: // Overwrite a byte.
      return concat([before, Uint8Array.of(below(256, random)), file.subarray(at + 1)]);
    case 2: // Overwrite what may be a count, length or offset.
      return concat([before, u64Bytes(edge), file.subarray(at + 8)]);
    case 3: // Overwrite what may be a type or a 32-bit value.
      return concat([before, u32Bytes(Number(edge % 2n ** 32n)), file.subarray(at + 4)]);
    case 4: // Cut bytes out, or the rest off.
      return concat([
        before,
        random() < 0.3 ? new Uint8Array(0) : file.subarray(at + below(64, random)),
      ]);
    default: { // Insert bytes from elsewhere in the file.
      const from = below(reach, random);
      return concat([before, file.subarray(from, from + below(64, random)), file.subarray(at)]);
    }
  }
}

function assertInside({ files }: OpenedModel): void {
  for (const { source, offset, byteLength } of files.tensors.values()) {
    assert(offset >= 0 && byteLength > 0 && offset + byteLength <= files.sources[source]!.size);
  }
  const { layers, vocabularySize, endTokens } = files.config;
  assert(layers <= files.tensors.size);
  assert(endTokens.every((id) => id < vocabularySize));
}

Deno.test(`openModel opens or refuses each of ${MUTANTS} mutants, with no other error`, async () => {
  const original = tinyModel({ type: "Q4_0", layers: 1 });
  const { byteLength } = await readHeader(new MemorySource("original.gguf", original));
  const random = randomNumbers(20240607);
  let opened = 0;
  let refused = 0;
  for (let i = 0; i < MUTANTS; i++) {
    let mutant: Uint8Array = original;
    for (let changes = below(3, random); changes >= 0; changes--) {
      mutant = mutate(mutant, Math.min(byteLength, mutant.length), random);
    }
    try {
      assertInside(await openModel([new MemorySource("mutant.gguf", mutant)]));
      opened++;
    } catch (error) {
      if (!(error instanceof ModelError)) throw new Error(`Mutant ${i}`, { cause: error });
      assert(error.subject !== "" && error.message.includes("mutant.gguf"));
      refused++;
    }
  }
  // Neither outcome may be rare, or the mutations would test nothing.
  assertGreater(opened, MUTANTS / 20);
  assertGreater(refused, MUTANTS / 2);
});
