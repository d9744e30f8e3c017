import type { Log } from "../../log/log.ts";
import type { LoggedRequest, RequestFilter, RequestTail } from "../../store/requests/contract.ts";
import { ApiError } from "../http/errors.ts";
import type { RequestFilterQuery } from "./contract.ts";
import { filterOf, requestBodyOf, type RequestsDeps } from "./requests.ts";
import type { Sessions } from "../session/session.ts";

const pollMs = 1000;
/** More in one poll are counted and skipped. */
const maxPerPoll = 200;
/** Those that are read again among them. */
const maxRead = 10 * maxPerPoll;
/** Rows become visible when their transaction commits, which may be after rows with higher ids. */
const overlapPolls = 3;
/** Often enough that no proxy takes the connection for idle. */
const pollsPerPing = 5;
const maxStreams = 20;

export interface RequestStreamDeps extends RequestsDeps {
  sessions: Pick<Sessions, "find">;
  /** Aborts when the server drains. */
  draining: AbortSignal;
  log: Log;
}

/**
 * A live tail of the request log, as server-sent events. It polls the database once a second, because only that has the
 * requests of all processes and instances.
 */
export const streamRequests = (deps: RequestStreamDeps) => {
  let open = 0;
  return ({ query, request }: { query: RequestFilterQuery; request: Request }): Response => {
    if (deps.retention.requestLog.days === 0) throw new ApiError(409, "The request log is off (REQUEST_LOG_DAYS)");
    if (open >= maxStreams) throw new ApiError(429, "Too many live views are open", { "retry-after": "5" });
    const headers = { "content-type": "text/event-stream;charset=utf-8" };
    // For HEAD, Elysia (1.4.30) reads the body to its end, which never comes.
    if (request.method === "HEAD") return new Response(null, { headers });
    open++;
    const events = tail(deps, filterOf(query), request);
    return new Response(
      streamOf(events, () => open--),
      { headers },
    );
  };
};

async function* tail(deps: RequestStreamDeps, filter: RequestFilter, request: Request): AsyncGenerator<string> {
  const { store, draining, sessions, log } = deps;
  try {
    const news = createNews(await store.requests.lastId());
    yield ": connected\n\n";
    for (let poll = 1; ; poll++) {
      await Bun.sleep(pollMs);
      const isPing = poll % pollsPerPing === 0;
      if (draining.aborted || (isPing && (await sessions.find(request.headers)) === undefined)) return;
      const { rows, missed } = news.of(await store.requests.listAfter(news.readFrom(), filter, maxRead));
      if (rows.length > 0) yield eventOf("requests", rows.slice(-maxPerPoll).map(requestBodyOf));
      const skipped = missed + Math.max(0, rows.length - maxPerPoll);
      if (skipped > 0) yield eventOf("skipped", { count: skipped });
      if (rows.length === 0 && isPing) yield ":\n\n";
    }
  } catch (error) {
    log.warn("Live view of requests failed; closing the connection", { error: String(error) });
  }
}

const eventOf = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Reads some rows again, and passes each on once. */
function createNews(lastId: number) {
  /** The highest ids after the last polls, the oldest first. */
  const highest = [lastId];
  let seen = new Set<number>();
  return {
    readFrom: (): number => highest[0] ?? lastId,
    of({ requests, leftOut, lastId: end }: RequestTail): { rows: LoggedRequest[]; missed: number } {
      const fresh = requests.filter(({ id }) => !seen.has(id));
      const firstId = requests[0]?.id ?? 0;
      const seenBefore = leftOut === 0 ? 0 : [...seen].filter((id) => id < firstId).length;
      // What was seen may be deleted meanwhile.
      const missed = Math.max(0, leftOut - seenBefore);
      // Also past rows that do not match: else a filter that nothing matches would read all of them again and again.
      const last = Math.max(highest.at(-1) ?? lastId, requests.at(-1)?.id ?? 0, end);
      // Which ones were missed is not known, so the next poll must not count them again.
      if (missed > 0) highest.length = 0;
      highest.push(last);
      if (highest.length > overlapPolls) highest.shift();
      const from = highest[0] ?? lastId;
      seen = new Set([...seen, ...fresh.map(({ id }) => id)].filter((id) => id > from));
      return { rows: fresh, missed };
    },
  };
}

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
