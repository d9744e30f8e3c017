import { createHmac } from "node:crypto";
import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import { causeOf } from "../proxy/upstream/abort-reason.ts";
import type { NoticeStore } from "../store/backends/contract.ts";
import type { LimitStore } from "../store/limits/contract.ts";
import type { WallClock } from "../time/clock.ts";
import { msPerMinute, timestampOf } from "../time/seoul.ts";
import { repeat } from "../time/wait.ts";
import { type Notice, planLimitNotices, planNotices, tellsUntil } from "../watching/notices.ts";
import type { ListedState } from "../watching/states.ts";
import type { Watch } from "../watching/watch.ts";

const ticksPerPlan = 10;
const answerMs = 10_000;
const [firstRetryMs, maxTries] = [5000, 8];
const away = "database_away";

/**
 * Posts what came and went to NOTICE_URL. All processes plan and send: a notice is a row of the database, which one of them
 * makes, and whoever takes its next try sends it. So a notice outlives its process, and is sent by one.
 */
export function startNotices(options: {
  config: Config["notices"];
  store: { notices: NoticeStore; limits: Pick<LimitStore, "listNotified"> };
  watch: Pick<Watch, "list" | "awayTold">;
  clock: WallClock;
  log: Log;
  tickMs?: number;
}) {
  const { watch, clock, log, tickMs = 1000 } = options;
  const { notices: store, limits } = options.store;
  const { url, secret } = options.config;
  const closing = new AbortController();
  let ticks = 0;
  /** When limits were looked at last: the keys are searched for those that have `notify`. */
  let limitsAt = -Infinity;

  async function plan(): Promise<void> {
    const [known, now] = [await watch.list(), clock()];
    if (known.unknownSince !== undefined) return await tellWithoutDatabase(known.states, now);
    const latest = new Map((await store.latest()).map(({ kind, at }) => [kind, at]));
    for (const notice of planNotices(known, latest, now)) {
      const { kind } = notice;
      // Who plans the same at the same time makes the same id.
      const id = `msg_${kind}_${latest.get(kind) ?? 0}`;
      await store.add({ id, kind, body: bodyOf(notice, now) }, tellsUntil(now));
    }
    if (now - limitsAt < msPerMinute) return;
    limitsAt = now;
    for (const { id, ...notice } of planLimitNotices(await limits.listNotified())) {
      await store.add({ id, kind: notice.kind, body: bodyOf(notice, now) }, now);
    }
  }

  /** Each process tells it, under an id that is the same for those that saw it begin in one minute. */
  async function tellWithoutDatabase(states: readonly ListedState[], now: number): Promise<void> {
    const [notice] = planNotices({ states: states.filter(({ kind }) => kind === away), past: [] }, new Map(), now);
    const since = notice?.states[0]?.since;
    if (notice === undefined || since === undefined) return;
    const problem = await post(`msg_${away}_${Math.floor(since / msPerMinute)}`, bodyOf(notice, now));
    if (problem === undefined) watch.awayTold();
  }

  async function sendNext(): Promise<void> {
    const due = await store.take(firstRetryMs);
    if (due === undefined) return;
    const problem = await post(due.id, due.body);
    const isLast = due.tries >= maxTries;
    if (problem === undefined || isLast) await store.finish(due.id);
    if (problem === undefined) return;
    log.warn(isLast ? "Notice given up" : "Notice not accepted; sending it again", { problem, try: due.tries });
  }

  /** @returns what is wrong, without the address and what it answered */
  async function post(id: string, body: string): Promise<string | undefined> {
    const timestamp = String(Math.floor(clock() / 1000));
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      ...(secret !== undefined && { "webhook-signature": sign(secret, `${id}.${timestamp}.${body}`) }),
    };
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(answerMs), closing.signal]);
      const response = await fetch(url ?? "", { method: "POST", headers, body, redirect: "manual", signal });
      await response.body?.cancel();
      return response.ok ? undefined : `it answers with status ${response.status}`;
    } catch (error) {
      return `it does not answer (${causeOf(error)})`;
    }
  }

  async function tick(): Promise<void> {
    if (ticks++ % ticksPerPlan === 0) await plan();
    await sendNext();
  }

  const ticking = url === undefined ? undefined : repeat(tickMs, tick);
  return {
    /** Sends one now. @returns what is wrong; null: there is no NOTICE_URL */
    async test(): Promise<string | undefined | null> {
      if (url === undefined) return null;
      const notice: Notice = { kind: "test", type: "test", text: "Test notice of Tollgate", states: [] };
      return await post(`msg_${crypto.randomUUID()}`, bodyOf(notice, clock()));
    },
    async close(): Promise<void> {
      closing.abort();
      await ticking?.stop();
    },
  };
}

function bodyOf({ type, text, states }: Notice, now: number): string {
  const data = states.map(({ since, until, ...state }) => ({
    ...state,
    since: timestampOf(since),
    until: until === null ? null : timestampOf(until),
  }));
  return JSON.stringify({ type: `tollgate.${type}`, timestamp: timestampOf(now), text, data: { states: data } });
}

/** As Standard Webhooks say. @param secret in base64, after `whsec_` */
export const sign = (secret: string, signed: string): string =>
  `v1,${createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
    .update(signed)
    .digest("base64")}`;
