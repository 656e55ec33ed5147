#!/usr/bin/env bash
# Measures WebGPU on a bare machine with a GPU, in under ten minutes: the tests of the kernels at
# default limits, then every row of `deno task bench` that is about the GPU. Needs a Vulkan driver,
# and Deno or npx. Writes to the folder named first, `gpu-bench` where left out:
#
#   adapter.json  what WebGPU finds    tests.txt  which tests passed    gpu*.json  a row's figures
#
#   tests/bench/gpu.sh [FOLDER] [MODEL]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-gpu-bench}
model=${2:-smollm2}
mkdir -p "$folder"

if command -v deno >/dev/null; then deno=(deno); else deno=(npx -y deno); fi

"${deno[@]}" eval --no-lock '
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error("Cannot measure: there is no WebGPU adapter");
  const { vendor, architecture, device, description } = adapter.info;
  const limits = Object.fromEntries(
    Object.keys(Object.getPrototypeOf(adapter.limits)).map((name) => [name, adapter.limits[name]]),
  );
  const info = { vendor, architecture, device, description };
  console.log(JSON.stringify({ info, features: [...adapter.features], limits }, null, 2));
' >"$folder/adapter.json"

timeout 240 "${deno[@]}" test -A --no-check gpu tests/gpu >"$folder/tests.txt" 2>&1 ||
  echo "Some GPU tests failed: see $folder/tests.txt" >&2
tail -n 3 "$folder/tests.txt"

# A row each, so that one that is too slow for this machine does not lose the others.
for row in gpu gpu-batch-16 gpu-depth-6144 gpu-prefill; do
  timeout 80 "${deno[@]}" task bench "$row" --model "$model" --runs 3 --json \
    >"$folder/$row.json" || echo "Cannot measure $row: it failed, or took over 80 s" >&2
done
