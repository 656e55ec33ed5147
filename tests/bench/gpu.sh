#!/usr/bin/env bash
# Measures WebGPU on a bare machine with a GPU, in under ten minutes: the tests of the kernels at
# default limits, then every row of `deno task bench` that is about the GPU. Needs a Vulkan driver,
# and Deno or npx. Writes to the folder named first, `gpu-bench` where left out:
#
#   adapter.json  what WebGPU finds    tests.txt  which tests passed    bench.json  the figures
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

timeout 330 "${deno[@]}" task bench gpu gpu-batch-16 gpu-depth-6144 gpu-prefill \
  --model "$model" --runs 3 --json >"$folder/bench.json"
