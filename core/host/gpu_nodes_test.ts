import { assertEquals } from "@std/assert";
import { mayHaveGpu, type NodeHost } from "./gpu_nodes.ts";

/** Linux with these folders; any other is missing. */
const linux = (folders: Readonly<Record<string, readonly string[] | string>>): NodeHost => ({
  platform: "linux",
  list(folder) {
    const names = folders[folder] ?? "ENOENT";
    return typeof names === "string"
      ? Promise.reject(Object.assign(new Error(names), { code: names }))
      : Promise.resolve(names);
  },
});

Deno.test("mayHaveGpu knows a GPU on Linux by its device node", async () => {
  const bare = ["null", "tty0", "vga_arbiter", "fb0", "dri", "nvidia-caps", "nvidia-uvm"];
  for (const node of ["nvidia0", "nvidia15", "nvidiactl", "dxg", "kfd", "mali0", "kgsl-3d0"]) {
    assertEquals(await mayHaveGpu(linux({ "/dev": [...bare, node] })), true, node);
  }
  assertEquals(
    await mayHaveGpu(linux({ "/dev": bare, "/dev/dri": ["card0", "renderD128"] })),
    true,
  );
  assertEquals(await mayHaveGpu(linux({ "/dev": bare, "/dev/dri": ["card0", "by-path"] })), false);
  assertEquals(await mayHaveGpu(linux({ "/dev": bare })), false);
});

Deno.test("mayHaveGpu rules a GPU out only where it could look", async () => {
  assertEquals(await mayHaveGpu(linux({ "/dev": "EACCES" })), true);
  assertEquals(await mayHaveGpu(linux({ "/dev": [], "/dev/dri": "EACCES" })), true);
  const list = () => Promise.reject(new Error("no files here"));
  for (const platform of [undefined, "darwin", "win32", "android"]) {
    assertEquals(await mayHaveGpu({ platform, list }), true, platform);
  }
});
