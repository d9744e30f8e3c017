import { gzipSync, zstdDecompressSync } from "node:zlib";

interface StoredDocument {
  id?: string;
  status: string;
  output: string;
  usage: object | null;
}

interface CreateBody {
  /** The id, as clients of vLLM and SGLang choose it. */
  request_id?: string;
  background?: boolean;
  stream?: boolean;
  /** What the response says. */
  input?: unknown;
  /** It gets no id. */
  nameless?: boolean;
  /** How it is sent, if not as what it is. */
  as?: "gzip" | "text";
}

const usageOf = (tokens: number): object => ({ input_tokens: 20, output_tokens: tokens, total_tokens: 20 + tokens });

const eventOf = (type: string, response: StoredDocument): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, response })}\n\n`;

/** What is no zstd stays as it is. */
function decodedOf(bytes: Uint8Array<ArrayBuffer>): Buffer {
  try {
    return zstdDecompressSync(bytes);
  } catch {
    return Buffer.from(bytes);
  }
}

/** Stores responses as vLLM does, where clients choose ids and the last response that is written under one stays; and all else. */
export function startStoringBackend(name: string) {
  const stored = new Map<string, StoredDocument>();
  let running: StoredDocument[] = [];
  const streams = new Set<() => void>();
  const [seen, bodies]: [string[], string[]] = [[], []];
  let created = 0;
  let held = { left: 0, all: Promise.withResolvers<void>() };

  function streamOf(document: StoredDocument, usage: object): Response {
    const { readable, writable } = new TransformStream<string, string>();
    const writer = writable.getWriter();
    void writer.write(`: ready\n\n${eventOf("response.created", document)}`).catch(() => {});
    streams.add(() => {
      const done = { ...document, status: "completed", usage };
      stored.set(document.id ?? "", done);
      void writer.write(eventOf("response.completed", done)).catch(() => {});
      void writer.close().catch(() => {});
    });
    return new Response(readable.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream" },
    });
  }

  const show = (text: string, type: string, as: CreateBody["as"]): Response =>
    as === "gzip"
      ? new Response(gzipSync(text), { headers: { "content-type": type, "content-encoding": "gzip" } })
      : new Response(text, { headers: { "content-type": as === "text" ? "text/plain" : type } });

  async function create(body: CreateBody): Promise<Response> {
    if (held.left > 0) {
      held.left -= 1;
      if (held.left === 0) held.all.resolve();
      await held.all.promise;
    }
    const id = body.request_id ?? `resp_${name}_${++created}`;
    const usage = usageOf(3);
    const document = { id, status: "queued", output: typeof body.input === "string" ? body.input : "", usage: null };
    const done = { ...document, status: "completed", usage };
    if (body.nameless === true) return Response.json({ ...done, id: "" });
    if (body.stream === true && body.as === undefined) return streamOf(document, usage);
    if (body.background === true) running.push(done);
    const shown = body.background === true ? document : done;
    stored.set(id, shown);
    if (body.stream === true) {
      const events = eventOf("response.created", document) + eventOf("response.completed", done);
      return show(events, "text/event-stream", body.as);
    }
    return show(JSON.stringify(shown), "application/json", body.as);
  }

  function read(method: string, id: string, action: string | undefined, search: string): Response {
    const document = stored.get(id);
    if (document === undefined) return Response.json({ error: { message: "The backend has none." } }, { status: 404 });
    if (method === "DELETE") return Response.json({ id, deleted: stored.delete(id), usage: usageOf(9) });
    if (action === "content") return new Response(document.output);
    if (search.includes("stream=true") && id.startsWith("resp")) {
      const body = eventOf("response.created", { ...document, usage: null }) + eventOf("response.completed", document);
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (!id.startsWith("batch"))
      return show(JSON.stringify(document), "application/json", search === "?gzip" ? "gzip" : undefined);
    const files = { output_file_id: `file-output-of-${id}`, error_file_id: `file-error-of-${id}` };
    for (const file of Object.values(files)) stored.set(file, { ...document, id: file });
    return Response.json({ ...document, ...files });
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method } = request;
      // Asked for the backend's health.
      if (!/\/v1\/+(?!models$)/.test(pathname)) return Response.json({ data: [] });
      seen.push(`${method} ${pathname.replace("/v1", "")}`);
      const path = decodeURIComponent(pathname).replaceAll(/\/+/g, "/");
      const [, folder = "", id, action] = /^\/v1\/(messages\/batches|[^/]+)(?:\/([^/]+))?(?:\/(.+))?$/.exec(path) ?? [];
      if (method !== "POST") return read(method, id ?? "", action, search);
      const bytes = await request.bytes();
      const text = (request.headers.has("content-encoding") ? decodedOf(bytes) : Buffer.from(bytes)).toString();
      bodies.push(text);
      if (stored.has(id ?? "") && action !== undefined) return read(method, id ?? "", action, search);
      if (folder === "responses" && id === undefined) return create(JSON.parse(text) as CreateBody);
      if (folder === "completions" || id !== undefined) return Response.json({});
      const made = `${folder.replace("messages/", "").replace(/e?s$/, "")}_${name}_${++created}`;
      stored.set(made, { id: made, status: "completed", output: `at ${name}`, usage: usageOf(9) });
      return Response.json({ ...stored.get(made), object: folder });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    /** Methods and paths, less `/v1`. */
    seen,
    /** Of POSTs. */
    bodies,
    /** Ends the responses that run in the background under this id, in the order of their creates. */
    complete(id: string): void {
      const done = running.find((one) => one.id === id);
      running = running.filter((one) => one !== done);
      if (done !== undefined) stored.set(id, done);
    },
    /** Sends the last event of the streams that are open. */
    endStreams(): void {
      for (const end of streams) end();
      streams.clear();
    },
    /** Holds what nobody created here. */
    put: (id: string, tokens = 3) =>
      void stored.set(id, { id, status: "completed", output: "", usage: usageOf(tokens) }),
    /** Keeps the next creates until so many have come. */
    async holdCreates(count: number): Promise<void> {
      held = { left: count, all: Promise.withResolvers() };
      await held.all.promise;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}
