import { type LoadConnection, type LoadEvents, openConnection } from "./connection.ts";
import { conversationMark } from "../agent-bodies.ts";
import { createHistogram } from "./histogram.ts";
import type { LoadResult, LoadSpec } from "./spec.ts";

const tickMs = 1;

/** Sends the requests of a run, and counts the responses independently of the target. */
export async function generateLoad(spec: LoadSpec): Promise<LoadResult> {
  const next = messagesOf(spec);
  const tally = createTally(spec);
  const finished = Promise.withResolvers<void>();
  let [sent, ended] = [0, 0];
  const idle: LoadConnection[] = [];

  const send = (connection: LoadConnection, dueAt: number): void => {
    connection.send(next(sent++), dueAt);
  };
  const end = (connection: LoadConnection, status: number, us: number): void => {
    tally.end(connection, status, us);
    if (++ended >= spec.requests) finished.resolve();
    else if (spec.perSecond > 0) idle.push(connection);
    else if (sent < spec.requests && status > 0) send(connection, performance.now());
  };
  const connections = await Promise.all(
    Array.from({ length: Math.min(spec.connections, spec.requests) }, () =>
      openConnection(spec.port, spec.stallMs > 0, { firstByte: tally.firstByte, gap: tally.gap, end }),
    ),
  );
  const begunAt = performance.now();
  const sendDue = (): void => {
    const now = performance.now();
    const due = Math.min(spec.requests, Math.floor(((now - begunAt) * spec.perSecond) / 1000));
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (sent >= due) {
        idle.push(connection);
        return;
      }
      // A request that is due in this tick is on time. An earlier one had to wait for a connection, which is latency.
      const dueAt = begunAt + ((sent + 1) * 1000) / spec.perSecond;
      send(connection, now - dueAt > 2 * tickMs ? dueAt : now);
    }
  };
  const timer = spec.perSecond > 0 ? setInterval(sendDue, tickMs) : undefined;
  if (timer === undefined) for (const connection of connections) send(connection, performance.now());
  else idle.push(...connections);
  const limit = setTimeout(finished.resolve, spec.limitMs);

  await finished.promise;
  const seconds = (performance.now() - begunAt) / 1000;
  clearInterval(timer);
  clearTimeout(limit);
  for (const connection of connections) connection.close();
  return { seconds, ...tally.result() };
}

/** Counts what the connections of a run report. */
function createTally({ stallMs }: LoadSpec): LoadEvents & { result: () => Omit<LoadResult, "seconds"> } {
  const [latency, firstByte, gap] = [createHistogram(), createHistogram(), createHistogram()];
  const statuses: Record<string, number> = {};
  const usage = { requests: 0, inputTokens: 0, outputTokens: 0 };
  let [frames, stalls] = [0, 0];
  return {
    firstByte: firstByte.add,
    gap(us) {
      gap.add(us);
      if (us > stallMs * 1000) stalls++;
    },
    end({ tail, lineFeeds }, status, us) {
      statuses[status] = (statuses[status] ?? 0) + 1;
      latency.add(us);
      if (status < 200 || status > 299) return;
      const [, input, output] =
        /"usage":\{"prompt_tokens":(\d+),"total_tokens":\d+,"completion_tokens":(\d+)/.exec(tail) ?? [];
      usage.requests++;
      usage.inputTokens += Number(input ?? 0);
      usage.outputTokens += Number(output ?? 0);
      frames += lineFeeds / 2;
    },
    result: () => ({
      statuses,
      usage,
      frames,
      stalls,
      latency: latency.quantiles(),
      firstByte: firstByte.quantiles(),
      gap: gap.quantiles(),
    }),
  };
}

/** @returns what is sent as the request of a number */
function messagesOf(spec: LoadSpec): (number: number) => Uint8Array {
  const bodies = typeof spec.body === "string" ? [spec.body] : spec.body;
  const messages = bodies.flatMap((body) => spec.keys.map((key) => requestMessage(spec, key, body)));
  const marks = messages.map(findMarks);
  return (number) => {
    const index = number % messages.length;
    const message = messages[index] ?? new Uint8Array();
    const digits = String(Math.floor(number / messages.length)).padStart(conversationMark.length, "0");
    for (const at of marks[index] ?? []) message.set(Buffer.from(digits), at);
    return message;
  };
}

function findMarks(message: Buffer): number[] {
  const marks: number[] = [];
  for (let at = message.indexOf(conversationMark); at >= 0; at = message.indexOf(conversationMark, at + 1)) {
    marks.push(at);
  }
  return marks;
}

function requestMessage({ path, port, headers }: LoadSpec, key: string, body: string): Buffer {
  const lines = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
    "User-Agent: tollgate-bench",
    "Accept: */*",
    ...headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
