/**
 * Downloads one file over HTTP. What is there already, from this run or an earlier one, is not
 * fetched again where the server can tell that the file is still the same (RFC 9110, If-Range).
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Origin, PartialFile } from "./partial_file.ts";
import type { TransferMeter } from "./transfer_meter.ts";

export interface DownloadRequest {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Milliseconds before the second attempt; doubled for each one after it. */
  readonly retryDelay?: number;
}

/** Attempts in a row that bring no new byte. */
const ATTEMPTS = 4;

/** The server's answer leaves no hope for another attempt. */
class Refusal extends Error {}

/**
 * @throws {Error} The server refuses, or breaks off again and again.
 */
export async function download(
  request: DownloadRequest,
  part: PartialFile,
  meter: TransferMeter,
): Promise<void> {
  let most = part.size;
  let wait = request.retryDelay ?? 1000;
  for (let failures = 0;;) {
    try {
      await transfer(request, part, meter);
      return meter.done();
    } catch (error) {
      if (error instanceof Refusal || request.signal.aborted) throw error;
      failures = part.size > most ? 1 : failures + 1;
      most = Math.max(most, part.size);
      if (failures === ATTEMPTS) throw describeFailure(error);
      await delay(wait, undefined, { signal: request.signal });
      wait *= 2;
    }
  }
}

async function transfer(
  { url, headers, signal }: DownloadRequest,
  part: PartialFile,
  meter: TransferMeter,
): Promise<void> {
  const response = await fetch(url, {
    headers: { ...headers, ...resumeHeaders(url, part) },
    signal,
  });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    // The part that is there may not be a part of the file any more.
    if (response.status === 416) await part.restart();
    throw refusal(response);
  }
  const total = await continueOrRestart(url, part, response);
  meter.start(part.size, total);
  for await (const chunk of response.body) {
    await part.append(chunk);
    meter.moveTo(part.size);
  }
  if (total !== undefined && part.size !== total) {
    throw new Error(`the answer ended after ${part.size} of ${total} bytes`);
  }
}

function resumeHeaders(url: URL, part: PartialFile): Record<string, string> {
  // A compressed answer would make sizes and ranges mean something else.
  const headers = { "accept-encoding": "identity" };
  if (part.size === 0 || part.origin?.url !== url.href) return headers;
  return { ...headers, range: `bytes=${part.size}-`, "if-range": part.origin.validator };
}

/** @returns The size of the whole file, where the server says. */
async function continueOrRestart(
  url: URL,
  part: PartialFile,
  response: Response,
): Promise<number | undefined> {
  if (response.status === 206) {
    const range = response.headers.get("content-range") ?? "";
    const [, start, total] = range.match(/^bytes (\d+)-\d+\/(\d+|\*)$/) ?? [];
    if (Number(start) === part.size) return total === "*" ? undefined : Number(total);
    await response.body?.cancel();
    await part.restart();
    throw new Error(`the server sent the range "${range}", which was not asked for`);
  }
  await part.restart(originOf(url, response));
  const length = response.headers.get("content-length");
  return length === null ? undefined : Number(length);
}

function originOf(url: URL, response: Response): Origin | undefined {
  const tag = response.headers.get("etag");
  const isStrong = tag !== null && !tag.startsWith("W/");
  const validator = isStrong ? tag : response.headers.get("last-modified");
  return validator === null ? undefined : { url: url.href, validator };
}

function refusal(response: Response): Error {
  const message = `the server answered ${response.status} ${response.statusText}`.trim();
  const mayPass = response.status >= 500 || [408, 416, 429].includes(response.status);
  return mayPass ? new Error(message) : new Refusal(message);
}

/** `fetch` says little more than "fetch failed"; the reason is its cause. */
function describeFailure(error: unknown): Error {
  const { message, cause } = error as Error;
  const reason = cause instanceof Error && !message.includes(cause.message);
  return new Error(reason ? `${message}: ${cause.message}` : message, { cause: error });
}
