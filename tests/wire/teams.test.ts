import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { clientOf } from "../support/client.ts";
import { logIn } from "../support/admin-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type EngineName, takeDatabase, whyNoPostgres } from "../support/postgres.ts";
import { childrenOf, isRunning } from "../support/proc.ts";
import { tokenOf } from "../support/user-token.ts";
import { freshly, processCount, scrape, startProcesses } from "../support/processes.ts";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { hearStatements } from "../support/statements.ts";
import { chat, errorOf, startTollgateWithKeys, type TollgateWithKeys } from "../support/tollgate-with-keys.ts";

interface Team {
  id: number;
  used: Readonly<Record<string, number | null>>;
  refused_today: number;
}

const users_secret = "0123456789abcdef0123456789abcdef";
let lastName = 0;
const createTeam = ({ admin }: Pick<TollgateWithKeys, "admin">, fields: object): Promise<Team> =>
  admin.expectOk<Team>("POST", "/api/teams", { name: `team ${++lastName}`, ...fields });

const engines = (["SQLite", "PostgreSQL"] as const).filter((name) => name === "SQLite" || whyNoPostgres === undefined);

describe.each<EngineName>(engines)("a team on %s", (engine) => {
  let gate: TollgateWithKeys;
  beforeAll(async () => {
    gate = await startTollgateWithKeys({ CONTACT: "Ask ops.", PROXY_QUEUE_TIMEOUT: "20" }, { engine });
  });
  afterAll(() => gate[Symbol.asyncDispose]());
  const getTeam = (id: number): Promise<Team> => gate.admin.expectOk<Team>("GET", `/api/teams/${id}`);
  const move = (id: number, teamId: number | null): Promise<unknown> =>
    gate.admin.expectOk("PATCH", `/api/keys/${id}`, { team_id: teamId });

  test("has its tokens used by all of its keys, and is named by the refusal", async () => {
    const { id } = await createTeam(gate, { name: "ml", tokens_per_week: 50 });
    const keys = [await gate.createKey({ team_id: id }), await gate.createKey({ team_id: id, tokens_per_day: 1000 })];
    const [first, second] = keys.map(({ key }) => key);
    const response = await gate.post(first ?? "", { script: "usage=30,30" });
    await response.text();
    expect(response.headers.get("x-ratelimit-limit-tokens")).toBe("50");
    const refused = await gate.post(second ?? "");
    expect(refused.headers.get("x-ratelimit-remaining-tokens")).toBe("0");
    expect(await errorOf(refused)).toEqual({
      status: 402,
      type: "insufficient_quota",
      message: expect.stringMatching(
        /^Your team \(ml\) is limited to 50 tokens per week; it is free again on \d+ [A-Z][a-z]+\. Ask ops\.$/,
      ),
      param: "tokens_per_week",
      code: "insufficient_quota",
    });
    await pollUntil(async () => (await getTeam(id)).refused_today === 1);
    expect(await getTeam(id)).toMatchObject({ used: { tokens_per_week: 60 }, key_count: 2 });
    const own = await gate.send("/v1/tollgate/key", undefined, { key: second ?? "" });
    expect(own.headers.get("x-ratelimit-remaining-tokens")).toBe("0");
    expect(await own.json()).toMatchObject({
      used: { tokens_per_day: 0, tokens_per_week: null },
      team: { name: "ml", tokens_per_week: 50, limit_states: { tokens_per_week: { used: 60, left: 0 } } },
    });
    // A member that goes round limits of tokens is refused for the team's sake too.
    const round = await gate.post(first ?? "", { body: { ...chat, n_predict: 5 } });
    expect(await errorOf(round)).toMatchObject({ status: 400, code: "member_not_allowed" });
  });

  test("and its key get more until the window ends, which refusals and their holder are told", async () => {
    const { id } = await createTeam(gate, { name: "more", tokens_per_month: 20 });
    const { id: keyId, key } = await gate.createKey({ team_id: id, tokens_per_day: 50 });
    const use = async (): Promise<number> => {
      const response = await gate.post(key, { script: "usage=30,30" });
      await response.text();
      return response.status;
    };
    expect([await use(), await use()]).toEqual([200, 402]);
    const extra = { limits_extra: { tokens_per_month: 2_000_000 } };
    expect(await gate.admin.expectOk("PATCH", `/api/teams/${id}`, extra)).toMatchObject({
      tokens_per_month: 20,
      ...extra,
      limit_states: { tokens_per_month: { limit: 2_000_020, extra: 2_000_000, used: 60, left: 1_999_960 } },
    });
    // Now it is the key's limit.
    expect(await use()).toBe(402);
    await gate.admin.expectOk("PATCH", `/api/keys/${keyId}`, { limits_extra: { tokens_per_day: 55 } });
    expect(await use()).toBe(200);
    const refused = await gate.post(key);
    expect(refused.headers.get("x-ratelimit-limit-tokens")).toBe("105");
    expect((await errorOf(refused)).message).toBe(
      "This API key is limited to 50 tokens per day and 55 more until midnight, Seoul; " +
        "it is free again at midnight, Seoul. Ask ops.",
    );
    const own = await (await gate.send("/v1/tollgate/key", undefined, { key })).json();
    expect(own).toMatchObject({
      limits_extra: { tokens_per_day: 55 },
      limit_states: { tokens_per_day: { limit: 105, extra: 55, left: 0 } },
      team: extra,
    });
    await gate.admin.expectOk("PATCH", `/api/keys/${keyId}`, { tokens_per_day: null, limits_extra: null });
    await gate.admin.expectOk("PATCH", `/api/teams/${id}`, { limits_extra: { tokens_per_month: 1_000_000 } });
    expect(await use()).toBe(200);
    await gate.admin.expectOk("PATCH", `/api/teams/${id}`, { limits_extra: { tokens_per_month: 1500 } });
    expect((await errorOf(await gate.post(key, { body: { ...chat, max_tokens: 5000 } }))).message).toMatch(
      /of the limit of 20 tokens per month and 1500 more until \d+ [A-Z][a-z]+ of your team \(more\), \d+ are left/,
    );
  });

  test("has its places shared by its keys: a request waits until one of another key ends", async () => {
    const { id } = await createTeam(gate, { max_concurrency: 1 });
    const [one, other] = [
      await gate.createKey({ team_id: id }),
      await gate.createKey({ team_id: id, tokens_per_day: 99 }),
    ];
    const body = { ...chat, stream: true };
    const running = await gate.postRaw(one.key, "gap=forever@2", body);
    await pollUntil(async () => (await getTeam(id)).used["max_concurrency"] === 1);
    const waiting = gate.post(other.key);
    const outcome = await Promise.race([waiting.then(() => "answered"), Bun.sleep(300).then(() => "waits")]);
    expect(outcome).toBe("waits");
    running.close();
    expect((await waiting).status).toBe(200);
  });

  test("is counted what its keys use from their moving in, and what runs then stays with the team before", async () => {
    const [before, after] = [
      await createTeam(gate, { tokens_per_day: 5000 }),
      await createTeam(gate, { tokens_per_day: 5000 }),
    ];
    const { id: keyId, key } = await gate.createKey({ team_id: before.id, tokens_per_minute: 100_000 });
    const running = gate.post(key, { script: "usage=30,30; slow-head=1000ms" });
    await pollUntil(async () => ((await getTeam(before.id)).used["tokens_per_day"] ?? 0) > 0);
    await move(keyId, after.id);
    await (await running).text();
    await (await gate.post(key, { script: "usage=3,4" })).text();
    await pollUntil(async () => (await getTeam(before.id)).used["tokens_per_day"] === 60);
    await pollUntil(async () => (await getTeam(after.id)).used["tokens_per_day"] === 7);
    // Deleted while it holds leases.
    const late = gate.post(key, { script: "usage=1,1; slow-head=500ms" });
    await pollUntil(async () => ((await getTeam(after.id)).used["tokens_per_day"] ?? 0) > 7);
    await gate.admin.expectOk("DELETE", `/api/teams/${after.id}`);
    expect((await late).status).toBe(200);
    await (await gate.post(key, { script: "usage=10,10" })).text();
    const { rows } = await gate.admin.expectOk<{ rows: { team_id: number; input_tokens: number }[] }>(
      "GET",
      `/api/usage/costs?by=team&key_id=${keyId}`,
    );
    expect(rows.map((row) => [row.team_id, row.input_tokens])).toEqual([
      [0, 10],
      [before.id, 30],
      [after.id, 4],
    ]);
    const requests = async (query: string) =>
      (await gate.admin.listRequests(`?key_id=${keyId}${query}`)).map((one) => [one.team_id, one.team_name]);
    expect(await requests("")).toEqual([
      [null, null],
      [after.id, `team ${lastName}`],
      [after.id, `team ${lastName}`],
      [before.id, `team ${lastName - 1}`],
    ]);
    expect(await requests(`&team_id=${before.id}`)).toHaveLength(1);
    expect(await requests("&team_id=0")).toEqual([[null, null]]);
    const groups = await gate.admin.expectOk<{
      rows: { name: string | null; id: number | null; request_count: number }[];
    }>("GET", `/api/requests/groups?by=team&key_id=${keyId}`);
    const byId = new Map(groups.rows.map((row) => [row.id, [row.name, row.request_count]]));
    expect(byId).toEqual(
      new Map<number | null, [string | null, number]>([
        [null, [null, 1]],
        [before.id, [`team ${lastName - 1}`, 1]],
        [after.id, [`team ${lastName}`, 2]],
      ]),
    );
  });

  test("has used in a month what its rows add up to in each grouping, after a key was moved in the middle of it", async () => {
    const high = { tokens_per_month: 1_000_000 };
    const [before, after] = [await createTeam(gate, high), await createTeam(gate, high)];
    const moved = await gate.createKey({ team_id: before.id, users_from: "body", tags: ["a"], owner: "Kim" });
    const stays = await gate.createKey({ team_id: before.id });
    const use = async (key: string, script: string, more: object = {}): Promise<void> =>
      void (await (await gate.post(key, { script, body: { ...chat, ...more } })).text());
    await use(moved.key, "usage=30,30", { user: "u-1" });
    await use(moved.key, "usage=5,6", { model: "another", user: "u-2" });
    await use(stays.key, "usage=7,8");
    const running = use(moved.key, "usage=100,1; slow-head=700ms");
    await pollUntil(async () => ((await getTeam(before.id)).used["tokens_per_month"] ?? 0) > 86);
    await move(moved.id, after.id);
    await running;
    await use(moved.key, "usage=9,1", { user: "u-1" });
    await use(stays.key, "usage=2,2");
    const month = async (id: number) => (await getTeam(id)).used["tokens_per_month"];
    await pollUntil(async () => (await month(before.id)) === 191 && (await month(after.id)) === 10);
    const from = `${new Date(Date.now() + 9 * 3_600_000).toISOString().slice(0, 7)}-01`;
    type Row = Readonly<Record<"input_tokens" | "output_tokens", number>> & { team_id: number | null };
    const rowsOf = async (query: string): Promise<Row[]> =>
      (await gate.admin.expectOk<{ rows: Row[] }>("GET", `/api/usage/costs?from=${from}&${query}`)).rows;
    const sum = (rows: readonly Row[]): number =>
      rows.reduce((all, row) => all + row.input_tokens + row.output_tokens, 0);
    for (const by of ["day", "key", "user", "model", "owner", "key_model"]) {
      for (const [id, used] of [[before.id, 191] as const, [after.id, 10] as const]) {
        expect([by, sum(await rowsOf(`by=${by}&team_id=${id}`))]).toEqual([by, used]);
      }
    }
    const byTeam = new Map((await rowsOf("by=team")).map((row) => [row.team_id, sum([row])]));
    expect([byTeam.get(before.id), byTeam.get(after.id)]).toEqual([191, 10]);
    // All teams of a key, and all users, are the key.
    const ofKey = sum(await rowsOf(`by=key&key_id=${moved.id}`));
    for (const by of ["team", "user"]) expect(sum(await rowsOf(`by=${by}&key_id=${moved.id}`))).toBe(ofKey);
    expect(ofKey).toBe(182);
  });
});

test.skipIf(whyNoPostgres !== undefined)("a key in a team costs the same statements as one without", async () => {
  const { url, release } = await takeDatabase();
  const address = new URL(url);
  using heard = hearStatements(Number(address.port));
  address.port = String(heard.port);
  await using gate = await startTollgateWithKeys({ DATABASE_URL: address.href, SECRET_KEY: "0123456789abcdef" });
  const team = await createTeam(gate, { tokens_per_minute: 1_000_000 });
  /** The statements of a request, each once: when a flush ends is by chance. What runs by itself is none of them. */
  const statementsOf = async (key: string): Promise<string[]> => {
    // What is prepared once, and what watches limits from then on, is not theirs.
    await (await gate.post(key)).text();
    heard.executed.length = 0;
    await (await gate.post(key)).text();
    const ofRequests = /where \("?keys"?|tollgate_take_leases|insert into "(?:usage|request_log|lease)|update "keys"/;
    await pollUntil(() => heard.executed.some((text) => text.includes('update "keys"')));
    return [...new Set(heard.executed.filter((text) => ofRequests.test(text)))].toSorted();
  };
  const plain = await statementsOf((await gate.createKey({})).key);
  const inTeam = await statementsOf((await gate.createKey({ team_id: (await createTeam(gate, {})).id })).key);
  expect(plain.length).toBeGreaterThan(5);
  expect(inTeam).toEqual(plain);
  const limited = await statementsOf((await gate.createKey({ tokens_per_minute: 1_000_000 })).key);
  const both = await statementsOf((await gate.createKey({ team_id: team.id, tokens_per_minute: 1_000_000 })).key);
  expect(limited.length).toBeGreaterThan(plain.length);
  expect(both).toEqual(limited);
  await gate[Symbol.asyncDispose]();
  release();
});

describe("over processes", () => {
  let backend: Simulator;
  beforeAll(() => {
    backend = startSimulator();
  });
  afterAll(() => backend.stop());

  test.each(["team", "user"])(
    "a %s's tokens hold exactly, though processes are killed, and its changes within a second",
    async (kind) => {
      const program = await startProcesses(backend.url, { LOG_LEVEL: "error" });
      const admin = await logIn(program.adminUrl, "admin", "password");
      const team = await createTeam({ admin }, { tokens_per_day: 1000 });
      const of = kind === "team" ? { team_id: team.id } : { users_from: "open-webui@prod", users_secret };
      const keys: string[] = [];
      for (let n = 0; n < 4; n++) {
        const fields = { name: `k${n}`, ...of, ...(n % 2 === 0 && { tokens_per_month: 100_000 }) };
        keys.push((await admin.expectOk<{ key: string }>("POST", "/api/keys", fields)).key);
      }
      const user = { source: "open-webui@prod", external: "kim", tokens_per_day: 1000 };
      const { id } = kind === "team" ? team : await admin.expectOk<{ id: number }>("POST", "/api/users", user);
      const path = `/api/${kind}s/${id}`;
      const send = (n: number): Promise<Response> =>
        clientOf(program.url, keys[n % keys.length] ?? "").send(
          "/v1/chat/completions",
          { ...chat, max_tokens: 5 },
          {
            headers: {
              ...freshly.headers,
              ...(kind === "user" && { "x-openwebui-user-jwt": tokenOf({ sub: "kim" }, users_secret) }),
            },
            script: "usage=20,5; slow-head=20ms",
          },
        );
      const seen = { ok: 0, refused: 0 };
      const load = async (first: number): Promise<void> => {
        for (let n = first; seen.refused < 8; n++) {
          // A connection to a killed process is reset; a process that starts has a share of its own until it knows the others.
          const status = await send(n).then(
            async (response) => [response.status, await response.text()][0],
            () => 0,
          );
          if (status === 200) seen.ok += 1;
          else if (status === 402) seen.refused += 1;
          else await Bun.sleep(50);
        }
      };
      const loads = [0, 1, 2, 3].map(load);
      await pollUntil(() => seen.ok >= 10);
      const victim = childrenOf(program.pid)[0] ?? 0;
      process.kill(victim, "SIGKILL");
      await pollUntil(() => !isRunning(victim));
      await Promise.all(loads);
      await pollUntil(async () => (await scrape(program)).tollgate_processes === processCount);
      const used = async (): Promise<number> => (await admin.expectOk<Team>("GET", path)).used["tokens_per_day"] ?? 0;
      // What clients saw is counted, no more than the limit was generated, and the rest was held by what was killed.
      expect(seen.ok * 25).toBeWithin(1, 1001);
      expect(await used()).toBeWithin(seen.ok * 25, 1026);
      // Within a second in every process.
      await admin.expectOk("PATCH", path, { tokens_per_day: 100_000 });
      await Bun.sleep(1000);
      for (let n = 0; n < 3 * processCount; n++) expect((await send(n)).status).toBe(200);
      expect(await program.stop()).toBe(0);
    },
    120_000,
  );
});
