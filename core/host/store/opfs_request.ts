/**
 * Asks a server of another origin for a file or the rest of it, by what CORS lets a page send and see
 * without the server's special leave: a plain Range, Content-Length and Last-Modified.
 */
import { ModelError } from "../../errors.ts";

/**
 * A URL, or where a path leads from the page.
 *
 * @throws {ModelError} It is neither.
 */
export function urlOf(address: string | URL): URL {
  const base = (globalThis as { location?: { href: string } }).location?.href;
  if (URL.canParse(address, base)) return new URL(address, base);
  throw new ModelError(String(address), `Cannot fetch "${address}": it is no URL`);
}

/** @throws {ModelError} The server cannot be reached, or refuses. */
export async function request(
  send: typeof fetch,
  url: URL,
  from: number,
  signal?: AbortSignal,
): Promise<Response> {
  let response: Response;
  try {
    response = await send(url, {
      cache: "no-store", // or the browser would keep a second copy
      ...(from > 0 && { headers: { range: `bytes=${from}-` } }),
      ...(signal && { signal }),
    });
  } catch (cause) {
    signal?.throwIfAborted();
    const { message } = cause as Error;
    throw new ModelError(url.href, `Cannot fetch ${url}: ${message}`, { cause });
  }
  // A range may be refused because the file has changed.
  if (response.ok || (from > 0 && response.status === 416)) return response;
  await response.body?.cancel();
  const status = `${response.status} ${response.statusText}`.trim();
  throw new ModelError(url.href, `Cannot fetch ${url}: the server answered ${status}`);
}

/** Bytes of the answer, where the server says. */
export function lengthOf(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  return length === null ? undefined : Number(length);
}

/** What tells versions of a file apart, where the server shows it to this page. */
export function validatorOf({ headers }: Response): string | undefined {
  const tag = headers.get("etag");
  const strong = tag !== null && !tag.startsWith("W/") ? tag : null;
  return strong ?? headers.get("last-modified") ?? undefined;
}

/** Whether an answer is the rest of what is there. */
export function continues(
  response: Response,
  kept: {
    readonly bytes: number;
    readonly size?: number | undefined;
    readonly validator?: string | undefined;
  },
): boolean {
  return response.status === 206 && kept.size !== undefined && kept.validator !== undefined &&
    validatorOf(response) === kept.validator && lengthOf(response) === kept.size - kept.bytes;
}
