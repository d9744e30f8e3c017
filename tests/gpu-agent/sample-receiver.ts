/** One request as received. */
export interface ReceivedPost {
  path: string;
  method: string;
  authorization: string | null;
  contentType: string | null;
  body: unknown;
}

export interface SampleReceiver extends AsyncDisposable {
  url: string;
  posts: ReceivedPost[];
  /** Resolves after this many posts. */
  received(count: number): Promise<void>;
  respond: (post: ReceivedPost) => Response | Promise<Response>;
}

export const accept = () => Response.json({ ok: true });

/** The server's side of POST /api/gpu-stats on a loopback port; records the requests. */
export function startSampleReceiver(respond: SampleReceiver["respond"] = accept, port = 0): SampleReceiver {
  const waiting = new Set<{ count: number; done: () => void }>();
  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    async fetch(request) {
      const post = await readPost(request);
      receiver.posts.push(post);
      for (const waiter of waiting) if (receiver.posts.length >= waiter.count) waiter.done();
      return receiver.respond(post);
    },
  });
  const receiver: SampleReceiver = {
    url: `http://127.0.0.1:${server.port}`,
    posts: [],
    respond,
    received(count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add({ count, done: resolve });
      if (receiver.posts.length >= count) resolve();
      return promise;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return receiver;
}

async function readPost(request: Request): Promise<ReceivedPost> {
  const text = await request.text();
  return {
    path: new URL(request.url).pathname,
    method: request.method,
    authorization: request.headers.get("authorization"),
    contentType: request.headers.get("content-type"),
    body: JSON.parse(text),
  };
}
