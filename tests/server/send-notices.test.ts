import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { sign, startNotices } from "../../src/server/send-notices.ts";
import { notSilenced, mergeStates, type SeenState } from "../../src/watching/states.ts";
import { createLog } from "../../src/log/log.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { noLimits, noRules } from "../../src/store/keys/rules.ts";
import { minuteOf } from "../../src/time/seoul.ts";
import { type TestStore, usageIncrement } from "../store/test-store.ts";
import { pollUntil } from "../support/poll-until.ts";

interface Received {
  id: string | null;
  timestamp: string | null;
  signature: string | null;
  body: string;
}

const secret = `whsec_${Buffer.from("a secret of 32 bytes, as ever 123").toString("base64")}`;
const received: Received[] = [];
let answer: (request: Request) => Response | Promise<Response> = () => new Response("secret answer");
const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { headers } = request;
    const [id, timestamp, signature] = ["id", "timestamp", "signature"].map((name) => headers.get(`webhook-${name}`));
    received.push({
      id: id ?? null,
      timestamp: timestamp ?? null,
      signature: signature ?? null,
      body: await request.text(),
    });
    return await answer(request);
  },
});
afterAll(() => receiver.stop(true));
const address = `${receiver.url.origin}/hook?token=hidden`;

onEachEngine(({ openTestStore }) => {
  let now: number;
  let opened: TestStore;
  let logged: string[];
  let isAway: boolean;
  beforeEach(async () => {
    [now, logged, isAway] = [Date.now(), [], false];
    received.length = 0;
    answer = () => new Response("secret answer");
    opened = await openTestStore(() => now);
  });

  const state = (given: Partial<SeenState> = {}): SeenState => ({
    kind: "disk",
    process: "a/1",
    object: "",
    since: now - 61_000,
    until: null,
    told: 0,
    what: "1 GB free in DATA_DIR",
    count: null,
    ...notSilenced,
    ...given,
  });
  /** One process; its ticks come much faster than by its clock. */
  function startProcess(known?: () => SeenState[]) {
    const told: string[] = [];
    const notices = startNotices({
      config: { url: address, secret },
      store: opened.store,
      watch: {
        list: async () => {
          const rows = known?.() ?? (await opened.store.states.list());
          return { ...mergeStates(rows, now), unknownSince: isAway ? 0 : undefined };
        },
        awayTold: () => void told.push("away"),
      },
      clock: () => now,
      log: createLog({ level: "warn", format: "json", clock: () => now, write: (line) => logged.push(line) }),
      tickMs: 5,
    });
    return { ...notices, told, [Symbol.asyncDispose]: notices.close };
  }
  const idle = () => Bun.sleep(300);

  test("a state is told once by several processes, signed, and its end too", async () => {
    await using processes = new AsyncDisposableStack();
    for (let n = 0; n < 2; n++) processes.use(startProcess());
    await opened.store.states.save([state()]);
    await pollUntil(() => received.length > 0);
    // Long enough for both to plan again.
    await idle();
    expect(received).toHaveLength(1);
    const [{ id, timestamp, signature, body } = { id: "", timestamp: "", signature: "", body: "{}" }] = received;
    expect(JSON.parse(body)).toMatchObject({
      type: "tollgate.state",
      text: expect.stringContaining("1 GB free in DATA_DIR. Make room"),
      data: { states: [{ kind: "disk", until: null, instance: "a" }] },
    });
    const key = Buffer.from("a secret of 32 bytes, as ever 123");
    const hash = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    expect(signature).toBe(`v1,${hash}`);
    await opened.store.states.save([state({ since: now - 61_000, until: now })]);
    now += 10 * 60_000;
    await pollUntil(() => received.length > 1);
    await idle();
    expect(received).toHaveLength(2);
    expect(received[1]?.body).toContain("Over: 1 GB free in DATA_DIR");
    await opened[Symbol.asyncDispose]();
  });

  test("75, 95 and 100 % of a limit are told once by several processes, where key, user or team wants that", async () => {
    // No day ends meanwhile.
    now = Date.parse("2026-06-15T12:00:00.000+09:00");
    const { keys, subjects, usage } = opened.store;
    const rules = { ...noRules, tokens_per_day: 100, requests_per_minute: 1 };
    const limits = { ...noLimits, tokens_per_month: 50, notify: true } as const;
    const team = await subjects.create("team", { name: "Team", note: null, tags: [], limits, createdAt: now });
    if (typeof team === "string") throw new Error(team);
    const row = { createdAt: now, teamId: team.id };
    const key = await keys.create({ ...row, name: "loud", key: "1", rules: { ...rules, notify: true } });
    const quiet = await keys.create({ ...row, name: "quiet", key: "2", rules });
    if (typeof key === "string" || typeof quiet === "string") throw new Error("Collision");
    const use = (keyId: number, inputTokens: number, teamId?: number) => {
      const used = { keyId, minute: minuteOf(now), inputTokens, outputTokens: 0 };
      return usage.add([usageIncrement({ ...used, ...(teamId !== undefined && { teamId }) })]);
    };
    await use(quiet.id, 100);
    await use(key.id, 74);
    await using processes = new AsyncDisposableStack();
    for (let n = 0; n < 2; n++) processes.use(startProcess());
    await idle();
    expect(received).toEqual([]);
    const textsAfter = async (minutes: number) => {
      now += minutes * 60_000;
      await pollUntil(() => received.length > 0);
      await idle();
      return received.splice(0).map(({ body }) => {
        const { type, text } = JSON.parse(body) as { type: string; text: string };
        return `${type}: ${text.replace(/, which begin anew at .*/, "")}`;
      });
    };
    await use(key.id, 1);
    expect(await textsAfter(1)).toEqual(["tollgate.limit: loud has used 75% of its tokens per day (75 of 100)"]);
    await use(key.id, 30, team.id);
    await use(key.id, 10, team.id);
    expect((await textsAfter(1)).toSorted()).toEqual([
      "tollgate.limit: Team has used 75% of its tokens per month (40 of 50)",
      "tollgate.limit: loud has used 100% of its tokens per day (115 of 100)",
    ]);
    now += 60_000;
    await idle();
    expect(received).toEqual([]);
    await opened[Symbol.asyncDispose]();
  });

  test.each([
    ["fails", () => new Response("secret answer", { status: 500 }), "status 500"],
    ["redirects", () => Response.redirect(`${receiver.url.origin}/elsewhere`, 307), "status 307"],
  ])(
    "one that a server which %s does not accept is sent again with the same id, and given up after 8 tries",
    async (_, refuse, why) => {
      answer = refuse;
      await using processes = new AsyncDisposableStack();
      processes.use(startProcess());
      await opened.store.states.save([state()]);
      /** Those of the first notice: the end of a state that nobody sees any more is another one. */
      const tries = () => received.filter(({ id }) => id === received[0]?.id).length;
      const waits = [5, 10, 20, 40, 80, 160, 320];
      for (const [index, seconds] of waits.entries()) {
        await pollUntil(() => tries() === index + 1);
        now += seconds * 1000 - 1;
        await Bun.sleep(30);
        expect(tries()).toBe(index + 1);
        now += 1;
      }
      await pollUntil(() => tries() === 8);
      now += 3_600_000;
      await idle();
      expect(tries()).toBe(8);
      const log = logged.join("\n");
      expect(log).toContain(why);
      expect(log).toContain("given up");
      for (const hidden of ["hidden", "secret answer", secret]) expect(log).not.toContain(hidden);
      await opened[Symbol.asyncDispose]();
    },
  );

  test("while the database is away, a process tells that itself, and nothing else", async () => {
    isAway = true;
    const rows = [state(), state({ kind: "database_away", what: "PostgreSQL away" })];
    await using process = startProcess(() => rows);
    await pollUntil(() => process.told.length > 0);
    expect(received[0]?.body).toContain("PostgreSQL away");
    expect(received.some(({ body }) => body.includes("1 GB"))).toBe(false);
    await opened[Symbol.asyncDispose]();
  });

  test("a test notice says what is wrong, within its time", async () => {
    await using process = startProcess();
    expect(await process.test()).toBeUndefined();
    expect(received[0]?.body).toContain("tollgate.test");
    answer = () => new Promise(() => {});
    const began = performance.now();
    expect(await process.test()).toContain("does not answer");
    expect(performance.now() - began).toBeLessThan(15_000);
    await opened[Symbol.asyncDispose]();
  });
});

describe("a signature", () => {
  test("is that of Standard Webhooks", () => {
    // The example of their document.
    const body = '{"test": 2432232314}';
    const signed = `msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.${body}`;
    expect(sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", signed)).toBe(
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    );
  });
});
