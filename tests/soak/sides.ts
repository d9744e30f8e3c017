import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import type { SimulatedRequest } from "../support/simulator/request.ts";
import type { Wire } from "../support/simulator/wire.ts";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { pollUntil, pollUntilStable } from "../support/poll-until.ts";
import { startProgram } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** What the backend sends, byte for byte, each piece by itself. */
export interface Answer {
  pieces: readonly (string | Uint8Array)[];
  /** Undefined: the connection stays open. */
  cut?: "end" | "reset";
}

export interface Sent {
  /** Gets the API key, and the id under which log and backend find the request. */
  bytes: (key: string, id: string) => readonly (string | Uint8Array)[];
  /** Undefined: the simulated model answers, or does what `x-simulate` says. */
  answer?: Answer;
  /** The client takes so many bytes of the body and leaves. */
  leavesAfter?: number;
  /** The key of another client sends it. */
  byOther?: boolean;
}

export interface Case {
  room: string;
  name: string;
  /** Of both keys. */
  rules?: object;
  /** One after the other. */
  sent: readonly Sent[];
}

/** A world of settings, in which the cases run. */
export interface World {
  name: string;
  /** How many simulated backends there are. */
  backends: number;
  /** @param file writes a file, and returns its path */
  settings: (urls: readonly string[], file: (name: string, text: string) => string) => Record<string, string>;
  cases: readonly Case[];
}

/** What is seen of a case, by what it is. Texts, because they are compared and printed. */
export type Seen = Record<string, string>;

/** A request that stays silent that long is seen as one that hangs. */
const silentMs = 5000;
const password = "password";
const keyOf = (index: number, isOther: boolean): string => `sk-side-${isOther ? "other" : "own"}-${index}-0123456789`;
export const idOf = (index: number, position: number): string => `case-${index}-${position}`;

export interface Side extends AsyncDisposable {
  run: (index: number) => Promise<void>;
  /** Of each case, once everything is counted; the last one is what the reports say. */
  seen: () => Promise<Seen[]>;
}

/** @param program a binary, or a folder with the sources */
export async function startSide(program: string, { backends: count, settings, cases }: World): Promise<Side> {
  const command = statSync(program).isDirectory() ? [process.execPath, join(program, "src/main.ts")] : [program];
  const folder = createTempFolder();
  const backends = Array.from({ length: count }, () => startSimulator({ recordRequests: 100_000 }));
  const answers = new Map<string, Answer>();
  const file = (name: string, text: string): string => {
    writeFileSync(folder.file(name), text);
    return folder.file(name);
  };
  const environment = {
    ADMIN_PASSWORD: password,
    LOG_LEVEL: "error",
    ...settings(
      backends.map(({ url }) => url),
      file,
    ),
  };
  const running = await startProgram(environment, [], [...command, "serve"]);
  const admin = await logIn(running.adminUrl, "admin", password);
  await createKeys(admin, cases);
  const clients = cases.map((): Seen => ({}));
  const names = new Map<string, string>([[new URL(running.url).port, "OURS"]]);
  for (const [index, { port }] of backends.entries()) names.set(String(port), `BACKEND${index}`);
  const calm = (text: string): string => calmed(text, names);
  return {
    async run(index) {
      const seen = clients[index] ?? {};
      for (const [position, one] of (cases[index]?.sent ?? []).entries()) {
        const id = idOf(index, position);
        for (const backend of backends) answerWith(backend, one.answer);
        if (one.answer !== undefined) answers.set(id, one.answer);
        Object.assign(
          seen,
          await exchange(running.url, keyOf(index, one.byOther === true), id, one, `${position} `, calm),
        );
      }
    },
    async seen() {
      const rows = await settledRows(admin);
      const keys = await admin.expectOk<Row[]>("GET", "/api/keys");
      for (const [index, { sent }] of cases.entries()) {
        const seen = clients[index] ?? {};
        for (const [position] of sent.entries()) {
          const id = idOf(index, position);
          seen[`${position} backend`] = calm(backends.flatMap((one, at) => requestsOf(one, id, at)).join("\n"));
          seen[`${position} log`] = calm(
            rows
              .filter((row) => row["request_id"] === id)
              .map(fieldsOf)
              .join("\n"),
          );
        }
        for (const isOther of [false, true]) {
          const counted = keys.find(({ name }) => name === keyOf(index, isOther));
          if (counted !== undefined) seen[isOther ? "other key" : "key"] = calm(fieldsOf(counted));
        }
      }
      return [...clients, await reports(admin)];
    },
    async [Symbol.asyncDispose]() {
      await running.stop("SIGKILL");
      for (const backend of backends) backend.stop();
      folder.remove();
    },
  };
}

function answerWith(backend: Simulator, answer: Answer | undefined): void {
  backend.handle(answer === undefined ? undefined : (_: SimulatedRequest, wire: Wire) => write(answer, wire));
}

async function write({ pieces, cut }: Answer, wire: Wire): Promise<void> {
  for (const piece of pieces) {
    if (wire.isClosed) return;
    wire.write(piece);
    await wire.drained();
    // A packet of its own, for most.
    await Bun.sleep(0);
  }
  if (cut === undefined) return;
  // What was written has been read by then; else it may be lost with the connection, on one side only.
  await Bun.sleep(30);
  if (cut === "end") wire.end();
  else wire.reset();
}

/** All limits of a case are so high that none refuses, unless the case says so. */
async function createKeys(admin: AdminClient, cases: readonly Case[]): Promise<void> {
  for (const [index, { rules = {}, sent }] of cases.entries()) {
    for (const isOther of sent.some(({ byOther }) => byOther === true) ? [false, true] : [false]) {
      const key = keyOf(index, isOther);
      await admin.expectOk("POST", "/api/keys", { name: key, key, ...rules });
    }
  }
}

async function exchange(
  url: string,
  key: string,
  id: string,
  { bytes, leavesAfter }: Sent,
  prefix: string,
  calm: (text: string) => string,
): Promise<Seen> {
  const client = await connectRaw(url, { deadlineMs: silentMs });
  try {
    for (const part of bytes(key, id)) client.send(part);
    if (leavesAfter !== undefined) {
      await pollUntil(() => client.bodyBytes() >= leavesAfter, silentMs);
      await pollUntilStable(client.bodyBytes);
      client.reset();
      return { [`${prefix}client`]: "left" };
    }
    return await received(client, prefix, calm);
  } catch (error) {
    const [line = ""] = String(error).split("\n");
    return { [`${prefix}client`]: `no response: ${line.slice(0, 200)}` };
  } finally {
    client.close();
  }
}

async function received(client: RawClient, prefix: string, calm: (text: string) => string): Promise<Seen> {
  const { version, status, reason, headers } = await client.head();
  const ending = await client.ended();
  const lines = headers.filter(([name]) => !varies.has(name.toLowerCase())).map(([name, value]) => `${name}: ${value}`);
  return {
    [`${prefix}head`]: calm([`${version} ${status} ${reason}`, ...lines].join("\n")),
    [`${prefix}body`]: calm((await client.body()).toString("latin1")),
    [`${prefix}end`]: `${ending}${client
      .interim()
      .map((one) => ` ${one.status}`)
      .join("")}`,
  };
}

/** Headers of clocks. */
const varies: ReadonlySet<string> = new Set(["date", "server-timing"]);
/** Of a log row and a key: times, what they are derived from, and numbers that the database gives. */
const unstable = /(_at|_ms|^id|^key|key_id|place|created|conversation|cache_loss|reset.*)$/;

type Row = Record<string, unknown>;

/**
 * A field without a value says nothing, and may be new. How much of a response went out before its row was written is a matter
 * of luck, if it broke off or is a stream.
 */
function fieldsOf({ response_bytes: bytes, ...row }: Row): string {
  const isWhole = row["outcome"] === "completed" && row["streamed"] === false;
  return Object.entries(isWhole ? { ...row, bytes } : row)
    .filter(([name, value]) => value !== null && value !== 0 && !unstable.test(name))
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join("\n");
}

const requestsOf = (backend: Simulator, id: string, at: number): string[] =>
  backend
    .requests()
    .filter((request) => request.header("x-request-id") === id)
    .map((request) => {
      const head = [`${at}: ${request.method} ${request.target}`, ...request.headers.map((one) => one.join(": "))];
      return [...head, "", Buffer.from(request.body()).toString("latin1")].join("\n");
    });

/** The ports of this side, what was made up for this one request, and times. */
const calmed = (text: string, names: ReadonlyMap<string, string>): string =>
  text
    .replaceAll(/(127\.0\.0\.1:|localhost:)(\d+)/g, (all, host: string, port: string) =>
      names.has(port) ? `${host}${names.get(port)}` : all,
    )
    .replaceAll(/\b((?:[a-z]+[_-])+)[\da-f]{16,32}\b/g, "$1ID")
    .replaceAll(/\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/g, "UUID")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+\d\d:\d\d)/g, "TIME")
    .replaceAll(/^(x-ratelimit-reset-\w+|anthropic-ratelimit-\w+-reset|retry-after): .*$/gim, "$1: TIME")
    .replaceAll(/"(created(?:_at)?|completed_at)":\d{10}/g, '"$1":0');

const pageSize = 200;

/** All rows of the request log, once no request runs and none is added. */
async function settledRows(admin: AdminClient): Promise<Row[]> {
  let before = -1;
  return pollUntil(async () => {
    await Bun.sleep(700);
    const rows: Row[] = [];
    let cursor = "";
    do {
      const path = `/api/requests?limit=${pageSize}${cursor === "" ? "" : `&cursor=${cursor}`}`;
      const page = await admin.expectOk<{ requests: Row[]; next_cursor: string | null }>("GET", path);
      rows.push(...page.requests);
      cursor = page.next_cursor ?? "";
    } while (cursor !== "");
    const isSettled = rows.length === before && (await admin.listRunning()).length === 0;
    before = rows.length;
    return isSettled ? rows : undefined;
  });
}

const reportPaths = ["/api/usage/summary", "/api/usage/total", "/api/usage/daily?days=7"];

async function reports(admin: AdminClient): Promise<Seen> {
  const seen: Seen = {};
  for (const path of reportPaths) seen[path] = JSON.stringify(await admin.expectOk("GET", path), undefined, 1);
  return seen;
}
