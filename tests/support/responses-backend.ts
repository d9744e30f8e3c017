interface StoredDocument {
  id: string;
  created_at?: number | undefined;
  status: string;
  output: string;
  usage: object | null;
}

export interface CreateBody {
  /** The id, as clients of vLLM and SGLang choose it. */
  request_id?: string;
  background?: boolean;
  stream?: boolean;
  /** False: the backend does not keep the response. */
  store?: boolean;
  /** What the response says, and shows to whoever reads it. */
  input?: string;
  tokens?: number;
  max_output_tokens?: number;
  /** Undefined: the backend names no time. */
  created_at?: number;
}

export interface ResponsesBackend extends Disposable {
  url: string;
  /** What arrived: method and path, less `/v1`. */
  seen: string[];
  /** Ends the responses that run in the background under this id, in the order of their creates. */
  complete(id: string): void;
  /** Sends the last event of the streams that are open. */
  endStreams(): void;
  /** Holds a response that nobody created here. */
  put(id: string, tokens: number): void;
}

const usageOf = (tokens: number): object => ({ input_tokens: 20, output_tokens: tokens, total_tokens: 20 + tokens });

const eventOf = (type: string, response: StoredDocument): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, response })}\n\n`;

/** Stores responses as vLLM does: clients may choose the ids, and the last one that is written under an id stays. */
export function startResponsesBackend(): ResponsesBackend {
  const stored = new Map<string, StoredDocument>();
  let running: StoredDocument[] = [];
  const streams = new Set<() => void>();
  const seen: string[] = [];
  let created = 0;

  function streamOf(document: StoredDocument, usage: object): Response {
    const { readable, writable } = new TransformStream<string, string>();
    const writer = writable.getWriter();
    void writer.write(eventOf("response.created", document)).catch(() => {});
    streams.add(() => {
      const done = { ...document, status: "completed", usage };
      stored.set(document.id, done);
      void writer.write(eventOf("response.completed", done)).catch(() => {});
      void writer.close().catch(() => {});
    });
    return new Response(readable.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream" },
    });
  }

  function create(body: CreateBody): Response {
    const id = body.request_id ?? `resp_${++created}`;
    const usage = usageOf(body.tokens ?? 3);
    const document = { id, created_at: body.created_at, status: "queued", output: body.input ?? "", usage: null };
    if (body.stream === true) return streamOf(document, usage);
    const done = { ...document, status: "completed", usage };
    if (body.background === true) running.push(done);
    const shown = body.background === true ? document : done;
    if (body.store !== false) stored.set(id, shown);
    return Response.json(shown);
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      seen.push(`${request.method} ${pathname.replace("/v1", "")}`);
      const [, id = "", action] = /^\/v1\/+responses\/+([^/]*)(?:\/(.*))?$/.exec(decodeURIComponent(pathname)) ?? [];
      if (request.method === "POST" && action === undefined) return create((await request.json()) as CreateBody);
      const document = stored.get(id);
      if (document === undefined)
        return Response.json({ error: { message: "The backend has none." } }, { status: 404 });
      if (request.method === "DELETE") return Response.json({ id, object: "response", deleted: stored.delete(id) });
      if (action === "input_items") return Response.json({ object: "list", data: [{ text: document.output }] });
      if (!search.includes("stream=true")) return Response.json(document);
      const body = eventOf("response.created", { ...document, usage: null }) + eventOf("response.completed", document);
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    seen,
    complete(id) {
      const done = running.find((one) => one.id === id);
      running = running.filter((one) => one !== done);
      if (done !== undefined) stored.set(id, done);
    },
    endStreams() {
      for (const end of streams) end();
      streams.clear();
    },
    put: (id, tokens) =>
      void stored.set(id, {
        id,
        created_at: 1,
        status: "completed",
        output: "of another gateway",
        usage: usageOf(tokens),
      }),
    [Symbol.dispose]: () => void server.stop(true),
  };
}
