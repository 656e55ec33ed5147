// Serves this folder. The first two headers isolate the page from other origins, which browsers ask
// of pages that share memory between threads; without them the engine runs on one thread.
//   deno task browser
const HEADERS = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cache-control": "no-cache",
};

const TYPES: Record<string, string> = {
  html: "text/html",
  css: "text/css",
  js: "text/javascript",
  wasm: "application/wasm",
};

export async function respond(request: Request): Promise<Response> {
  const [, path = "index.html"] = new URL(request.url).pathname.match(/^\/([\w./-]+)$/) ?? [];
  const type = TYPES[path.split(".").at(-1) ?? ""];
  try {
    if (type === undefined) throw new Deno.errors.NotFound();
    const file = await Deno.open(new URL(path, import.meta.url));
    return new Response(file.readable, { headers: { ...HEADERS, "content-type": type } });
  } catch {
    return new Response("not found", { status: 404, headers: HEADERS });
  }
}

if (import.meta.main) Deno.serve({ port: 8080, hostname: "127.0.0.1" }, respond);
