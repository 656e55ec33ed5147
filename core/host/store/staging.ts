/**
 * A folder in which one process prepares a model before it appears in the cache as a whole. Two
 * processes that fetch the same model never write to one file: a folder carries its owner in its
 * name, and changes hands by renaming, which only one can do.
 */
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";

/** Stands between a folder's key and its owner; keys have none. */
const MARK = "~";

let folders = 0;

export class Staging {
  /** What is downloaded, resumable as long as it lies here. */
  readonly path: string;
  readonly #free: string;

  private constructor(path: string, free: string) {
    this.path = path;
    this.#free = free;
  }

  /** The folder in which finished files are collected. */
  get files(): string {
    return join(this.path, "files");
  }

  /**
   * Takes over what an earlier process of this machine left behind, or starts with nothing.
   *
   * @param directory The cache folder.
   * @param key Path segments of the model below it.
   */
  static async claim(directory: string, key: readonly string[]): Promise<Staging> {
    const parent = join(directory, ".staging");
    await mkdir(parent, { recursive: true });
    const prefix = key.join("+") + MARK;
    const own = join(parent, `${prefix}${hostname()}${MARK}${process.pid}${MARK}${folders++}`);
    const staging = new Staging(own, join(parent, `${prefix}free`));
    for (const name of await readdir(parent)) {
      if (!name.startsWith(prefix) || !isAbandoned(name.slice(prefix.length))) continue;
      // Somebody else may be quicker; then there is nothing of that name left to rename.
      const isOurs = await rename(join(parent, name), own).then(() => true, () => false);
      if (isOurs) return staging;
    }
    await mkdir(own);
    return staging;
  }

  /**
   * Makes the finished files appear in the cache, all at once.
   *
   * @param isWhole Whether what lies at `target` is the model; another process may have been quicker.
   */
  async publish(target: string, isWhole: () => Promise<boolean>): Promise<void> {
    await mkdir(dirname(target), { recursive: true });
    try {
      await rename(this.files, target);
    } catch (error) {
      if (!await isWhole()) {
        // Moved rather than removed in place, so that nobody sees half of it.
        await rename(target, join(this.path, "replaced")).catch(() => {
          throw error;
        });
        await rename(this.files, target);
      }
    }
    await this.discard();
  }

  /** Leaves everything for a later process to go on with. */
  async release(): Promise<void> {
    await rename(this.path, this.#free).catch(() => this.discard());
  }

  async discard(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Whether nobody works in a folder: it was released, or its owner on this machine is gone. */
function isAbandoned(owner: string): boolean {
  const [host, pid] = owner.split(MARK);
  if (host === "free") return true;
  return host === hostname() && !isRunning(Number(pid));
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs, under another user.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
