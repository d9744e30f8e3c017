import type { Log } from "../../log/log.ts";
import type { LoggedRequest, RequestFilter } from "../../store/requests/contract.ts";
import { ApiError } from "../http/errors.ts";
import type { RequestFilterQuery } from "./contract.ts";
import { createNews, type News, seenOf } from "./news.ts";
import { filterOf, requestBodyOf, type RequestsDeps } from "./requests.ts";
import type { Sessions } from "../session/session.ts";

const pollMs = 1000;
/** More in one poll are counted and skipped. */
const maxPerPoll = 200;
/** Those that are read again among them. */
const maxRead = 10 * maxPerPoll;
/** Often enough that no proxy takes the connection for idle. */
const pingMs = 4500;
const maxStreams = 20;

export interface RequestStreamDeps extends RequestsDeps {
  sessions: Pick<Sessions, "find">;
  /** Aborts when the server drains. */
  draining: AbortSignal;
  log: Log;
}

/**
 * A live tail of the request log, as server-sent events. It polls the database once a second, because only that has the
 * requests of all processes and instances. A client that comes back with the id of an event gets what it has missed.
 */
export const streamRequests = (deps: RequestStreamDeps) => {
  let open = 0;
  return ({ query, request }: { query: RequestFilterQuery; request: Request }): Response => {
    if (deps.retention.requestLog.days === 0) throw new ApiError(409, "The request log is off (REQUEST_LOG_DAYS)");
    if (open >= maxStreams) throw new ApiError(429, "Too many live views are open", { "retry-after": "5" });
    const headers = { "content-type": "text/event-stream;charset=utf-8" };
    // Elysia (1.4.30) reads the body for HEAD to its end, which never comes. Remove when it does not.
    if (request.method === "HEAD") return new Response(null, { headers });
    open++;
    const events = tail(deps, filterOf(query, deps.catalog()), request);
    return new Response(
      streamOf(events, () => open--),
      { headers },
    );
  };
};

async function* tail(deps: RequestStreamDeps, filter: RequestFilter, request: Request): AsyncGenerator<string> {
  const { store, draining, sessions } = deps;
  const resumed = seenOf(request.headers.get("last-event-id"));
  let news: News | undefined;
  const read = whileOthersWait(deps.log, async () => {
    if (news !== undefined) return store.requests.listAfter(news.readFrom(), filter, maxRead);
    const lastId = await store.requests.lastId();
    // A database that was restored may end before that.
    news = createNews(resumed !== undefined && resumed.from <= lastId ? resumed : { from: lastId, seen: [] });
    return undefined;
  });
  const findSession = whileOthersWait(deps.log, async () =>
    (await sessions.find(request.headers)) ? "live" : "ended",
  );
  await read();
  let isConnected = false;
  for (let pingedAt = performance.now(); ;) {
    if (news !== undefined && !isConnected) yield `: connected\nid: ${news.eventId()}\n\n`;
    isConnected = news !== undefined;
    await Bun.sleep(pollMs);
    const isPing = performance.now() - pingedAt > pingMs;
    if (isPing) pingedAt = performance.now();
    if (draining.aborted || (isPing && (await findSession()) === "ended")) return;
    const found = await read();
    const { rows, missed } = news === undefined || found === undefined ? nothingNew : news.of(found);
    const id = news === undefined ? "" : `id: ${news.eventId()}\n`;
    if (rows.length > 0) yield `${id}${eventOf("requests", rows.slice(-maxPerPoll).map(requestBodyOf))}`;
    const skipped = missed + Math.max(0, rows.length - maxPerPoll);
    if (skipped > 0) yield `${id}${eventOf("skipped", { count: skipped })}`;
    if (rows.length === 0 && isPing) yield `:\n${id}\n`;
  }
}

const nothingNew: { rows: LoggedRequest[]; missed: number } = { rows: [], missed: 0 };

/**
 * Calls `work`, one call at a time, and waits for a short while only, so that a slow database does not keep the stream from
 * its pings. @returns calls it, unless a call is under way, and resolves with undefined if it fails or takes long
 */
function whileOthersWait<T>(log: Log, work: () => Promise<T>): () => Promise<T | undefined> {
  let pending: Promise<T | undefined> | undefined;
  let hasFailed = false;
  async function attempt(): Promise<T | undefined> {
    try {
      const result = await work();
      hasFailed = false;
      return result;
    } catch (error) {
      if (!hasFailed) log.warn("Live view of requests waits for the database", { error: String(error) });
      hasFailed = true;
      return undefined;
    }
  }
  return async () => {
    const waitMs = pending === undefined ? pollMs : 0;
    pending ??= attempt();
    const isDone = pending.then(() => true);
    if ((await Promise.race([isDone, Bun.sleep(waitMs)])) !== true) return undefined;
    const result = await pending;
    pending = undefined;
    return result;
  };
}

const eventOf = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Reads no event ahead of the client: one that is slow misses events, and is told how many. */
function streamOf(events: AsyncGenerator<string>, onEnd: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let ended = false;
  const end = (): void => {
    if (!ended) onEnd();
    ended = true;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await events.next();
        if (ended) return;
        if (done !== true) return controller.enqueue(encoder.encode(value));
        end();
        controller.close();
      },
      cancel() {
        end();
        void events.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
