#!/usr/bin/env bash
# Measures WebGPU on a bare machine with a GPU, in under ten minutes: the tests of the kernels at
# default limits, then every row of `deno task bench` that is about the GPU. Needs a Vulkan driver,
# and Deno or npx. Writes to the folder named first, `gpu-bench` where left out:
#
#   adapter.json  what WebGPU finds    tests.txt  which tests passed    gpu*.json  a row's figures
#
# Names at the end what failed or took too long, and fails then; of a row that took too long, what was
# measured is kept, marked incomplete. On two cores that play a GPU, those are all rows but the first.
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

# limited SECONDS NAME FILE COMMAND…: what is too slow for this machine, or fails, loses nothing else.
missing=()
limited() {
  local seconds=$1 name=$2 file=$3 status=0
  shift 3
  timeout "$seconds" "$@" >"$file" || status=$?
  if ((status == 0)); then return; fi
  if ((status == 124)); then
    echo "Cannot measure $name: it took over $seconds s" >&2
  else
    echo "Cannot measure $name: it failed with status $status" >&2
  fi
  missing+=("$name")
}

limited 240 tests "$folder/tests.txt" "${deno[@]}" test -A --no-check gpu tests/gpu
tail -n 3 "$folder/tests.txt"

for row in gpu gpu-batch-16 gpu-depth-6144 gpu-prefill; do
  limited 80 "$row" "$folder/$row.json" \
    "${deno[@]}" task bench "$row" --model "$model" --runs 3 --json
done
find "$folder" -name "*.json" -empty -delete

if ((${#missing[@]} > 0)); then
  echo "Not measured: ${missing[*]}" >&2
  exit 1
fi
