/** A headless Chromium, where this machine has one. */
import { type BrowserContext, chromium } from "playwright-core";
import { existsSync } from "node:fs";
import process from "node:process";
import { temporaryDirectory } from "./temporary_directory.ts";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Its path: what CHROMIUM names, else where it is usually installed. */
export const CHROMIUM: string | undefined = [process.env.CHROMIUM, ...PLACES]
  .find((path) => path && existsSync(path));

const QUIET = [
  ...["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync"],
  ...["--disable-background-networking", "--disable-component-update"],
];

/** WebGPU by Dawn on SwiftShader, Chromium's own Vulkan in software; else no GPU at all. */
const GPU = {
  none: ["--disable-gpu"],
  swiftshader: [
    ...["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"],
    "--enable-features=Vulkan",
  ],
};

export interface Browser extends AsyncDisposable {
  readonly context: BrowserContext;
}

/** Starts it with a profile of its own, which goes when it is disposed. */
export async function openChromium(gpu: keyof typeof GPU = "none"): Promise<Browser> {
  if (CHROMIUM === undefined) {
    throw new Error("Cannot find Chromium: install it, or name it in CHROMIUM");
  }
  const profile = await temporaryDirectory();
  const context = await chromium.launchPersistentContext(profile.path, {
    executablePath: CHROMIUM,
    args: [...QUIET, ...GPU[gpu]],
  });
  return {
    context,
    async [Symbol.asyncDispose]() {
      await context.close();
      await profile[Symbol.asyncDispose]();
    },
  };
}
