/** How fast the GPU reads memory: the peak that kernels are held against. */
import { type Kernel, read, write } from "../../gpu/kernel.ts";
import { timeDispatches } from "../../gpu/profile.ts";
import { Pipelines } from "../../gpu/pipelines.ts";

const WORKGROUP = 256;
/** Vectors of 16 bytes that a thread reads. */
const EACH = 32;

const STREAM: Kernel = {
  name: "stream",
  bindings: [read("source", "array<vec4<u32>>"), write("sums", "array<u32>")],
  code: `
@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let first = workgroup.x * ${WORKGROUP * EACH}u + thread;
  var sum = vec4<u32>(0u);
  for (var i = 0u; i < ${EACH}u; i++) {
    sum ^= source[first + i * ${WORKGROUP}u];
  }
  sums[workgroup.x * ${WORKGROUP}u + thread] = sum.x ^ sum.y ^ sum.z ^ sum.w;
}
`,
};

/**
 * The best of some reads of a large buffer, in bytes a second.
 *
 * @throws {BackendError} The device has no timestamp queries.
 */
export async function readBandwidth(gpu: GPUDevice, bytes = 128 * 2 ** 20): Promise<number> {
  const pipelines = new Pipelines(gpu);
  const { kernel, pipeline, layout } = await pipelines.compile(STREAM);
  const source = gpu.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE });
  const groups = bytes / (16 * EACH * WORKGROUP);
  const sums = gpu.createBuffer({ size: 4 * groups * WORKGROUP, usage: GPUBufferUsage.STORAGE });
  const bindings = pipelines.bind({ kernel, pipeline, layout }, { source, sums });
  const dispatch = { kernel: kernel.name, pipeline, bindings, bytes } as const;
  const runs = Array.from({ length: 10 }, () => ({
    ...dispatch,
    workgroups: [groups, 1, 1] as const,
  }));
  const times = await timeDispatches(gpu, runs);
  source.destroy();
  sums.destroy();
  return bytes / Math.min(...times.map(({ seconds }) => seconds));
}
