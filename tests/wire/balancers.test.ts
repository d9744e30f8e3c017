import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { type AdminClient, type ListedKey, logIn } from "../support/admin-client.ts";
import { type Balancer, type BalancerProgram, caddy, nginx } from "../support/balancer.ts";
import { startBlackhole } from "../support/blackhole.ts";
import { whyNoCurl } from "../support/curl.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { type Program, type ProgramEnvironment, startProgram } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { rounds } from "../support/rounds.ts";
import { manualBalancer, manualBlock } from "../support/manual.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startTollgate } from "../support/tollgate.ts";

const clients = 6;
/** Older versions do not retry a POST on the next instance, and end broken streams as if they were complete. */
const caddyIsOld = caddy.whyMissing === undefined && !Bun.semver.satisfies(caddy.version, ">=2.11.2");
if (caddyIsOld) {
  process.stderr.write(`Caddy ${caddy.version} is too old for the tests of killed instances: they are skipped\n`);
}

const body = JSON.stringify({ model: "m", stream: true, max_tokens: 7, messages: [{ role: "user", content: "Hi" }] });
const headersOf = (key: string, script: string): Record<string, string> => ({
  "x-api-key": key,
  "content-type": "application/json",
  "x-simulate": script,
});

/** @returns whether a complete, successful response arrived */
async function completes(url: string, key: string): Promise<boolean> {
  try {
    const headers = headersOf(key, "usage=5,7");
    const response = await fetch(`${url}/v1/messages`, { method: "POST", headers, body });
    return (await response.text()).includes("message_stop");
  } catch {
    return false;
  }
}

async function openStream(url: string, key: string, frames: number): Promise<RawClient> {
  const client = await connectRaw(url);
  client.request("POST", "/v1/chat/completions", headersOf(key, `gap=forever@${frames}`), body);
  // The backend sends nothing after these frames, so each must have been forwarded immediately.
  for (let frame = 0; frame < frames; frame++) expect(await client.nextEvent()).toStartWith("data: {");
  return client;
}

async function inFlight({ adminUrl }: Program): Promise<number> {
  const response = await fetch(`${adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } });
  return Number(/^tollgate_requests_in_flight (\d+)$/m.exec(await response.text())?.[1]);
}

const balancers: [BalancerProgram, language: "nginx" | "caddyfile", survivesKills: boolean][] = [
  [nginx, "nginx", true],
  [caddy, "caddyfile", !caddyIsOld],
];

describe.each(balancers)("$name in front of two instances", (balancerProgram, language, survivesKills) => {
  const isSkipped = balancerProgram.whyMissing !== undefined || whyNoPostgres !== undefined;
  let backend: Simulator;
  let environment: ProgramEnvironment;
  let instances: [Program, Program];
  let admins: [AdminClient, AdminClient];
  let balancer: Balancer;
  let created: ListedKey;
  /** Also what a set-up that failed had started. */
  const started = new AsyncDisposableStack();
  beforeAll(async () => {
    if (isSkipped) return;
    backend = startSimulator();
    started.defer(() => backend.stop());
    environment = {
      PROXY_UPSTREAM_URL: backend.url,
      DATABASE_URL: await (await sharedPostgres()).createDatabase(),
      SECRET_KEY: "0123456789abcdef",
      ADMIN_PASSWORD: "password",
      METRICS_TOKEN: "scrape",
      TRUST_PROXY: "1",
      LOG_LEVEL: "warn",
    };
    instances = await Promise.all([startProgram(environment), startProgram(environment)]);
    started.defer(async () => void (await Promise.all(instances.map((instance) => instance.stop("SIGKILL")))));
    const logInAt = ({ adminUrl }: Program): Promise<AdminClient> => logIn(adminUrl, "admin", "password");
    admins = await Promise.all([logInAt(instances[0]), logInAt(instances[1])]);
    created = await admins[0].createKey("test");
    balancer = started.use(await startBefore(instances[0].url, instances[1].url));
  });
  const startBefore = (one: string, two: string): Promise<Balancer> =>
    balancerProgram.start(
      manualBalancer(language)
        .replaceAll("gate-1.internal:8080", new URL(one).host)
        .replaceAll("gate-2.internal:8080", new URL(two).host),
    );
  afterAll(() => started.disposeAsync());

  test.skipIf(isSkipped)("forwards each frame immediately, and a client's disconnect", async () => {
    const streams = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((frames) => openStream(balancer.url, created.key, frames)),
    );
    expect(backend.stats().open).toBe(streams.length);
    for (const stream of streams) stream.close();
    await pollUntil(() => backend.stats().open === 0);
  });

  test.skipIf(isSkipped)("refuses a key at the first request after one instance disabled it", async () => {
    const { id, key } = await admins[0].createKey("revoked");
    for (let round = 0; round < 10; round++) {
      const admin = admins[round % 2 === 0 ? 0 : 1];
      await admin.updateKey(id, { is_active: false });
      expect(await completes(balancer.url, key)).toBe(false);
      await admin.updateKey(id, { is_active: true });
      expect(await completes(balancer.url, key)).toBe(true);
    }
  });

  test.skipIf(isSkipped || !survivesKills)(
    "loses only the requests of a killed instance, and counts are exact",
    async () => {
      const { id, key } = await admins[0].createKey("counted");
      const seen = { ended: 0, broken: 0 };
      const ending = new AbortController();
      const load = Array.from({ length: clients }, async () => {
        while (!ending.signal.aborted) seen[(await completes(balancer.url, key)) ? "ended" : "broken"]++;
      });
      for (let round = 0; round < rounds; round++) {
        const before = seen.ended;
        await pollUntil(() => seen.ended >= before + 40);
        const n = round % 2 === 0 ? 0 : 1;
        const victim = instances[n];
        const streams = [await openStream(balancer.url, created.key, 2)];
        // The load accounts for at most `clients` of the victim's requests, so it also has some of these streams.
        while ((await inFlight(victim)) <= clients) streams.push(await openStream(balancer.url, created.key, 2));
        await victim.stop("SIGKILL");
        expect(await Promise.race(streams.map((stream) => stream.ended()))).not.toBe("complete");
        for (let turn = 0; turn < 40; turn++) expect(await completes(balancer.url, key)).toBe(true);
        const brokenByKill = seen.broken;
        // The next kill follows immediately: a balancer that still avoided this instance would have none left.
        instances[n] = await startProgram({ ...environment, PORT: new URL(victim.url).port });
        expect(seen.broken).toBe(brokenByKill);
        for (const stream of streams) stream.close();
      }
      ending.abort();
      await Promise.all(load);
      const total = seen.ended + rounds * 40;
      const counted = (await admins[0].listKeys()).find((listed) => listed.id === id);
      expect(counted?.total_request_count).toBeGreaterThanOrEqual(total);
      // Broken responses may have been counted, although the client did not see their end.
      expect(counted?.total_request_count).toBeLessThanOrEqual(total + seen.broken);
      expect(counted?.total_output_tokens).toBe((counted?.total_request_count ?? 0) * 7);
    },
    300_000,
  );

  test.skipIf(isSkipped || !survivesKills)(
    "works without an instance whose machine does not respond at all",
    async () => {
      using gone = await startBlackhole();
      await using halved = await startBefore(gone.url, instances[1].url);
      for (let turn = 0; turn < 40; turn++) expect(await completes(halved.url, created.key)).toBe(true);
    },
  );

  // The last test, because it locks its address out.
  test.skipIf(isSkipped || whyNoCurl !== undefined)(
    "limits logins by the client's real address, whatever X-Forwarded-For claims",
    async () => {
      // Not the balancer's own address.
      const from = "127.0.0.2";
      const login = JSON.stringify({ username: "admin", password: "wrong" });
      const options = `--interface ${from} -s -o /dev/null -w %{http_code} -H content-type:application/json`.split(" ");
      const attempt = (turn: number): number => {
        const claim = `x-forwarded-for: 203.0.113.${turn}`;
        const curl = ["curl", ...options, "-H", claim, "-d", login, `${balancer.url}/api/login`];
        return Number(Bun.spawnSync(curl).stdout.toString());
      };
      const statuses = Array.from({ length: 11 }, (_, turn) => attempt(turn));
      expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
      const logged = (): string => instances.map(({ stdout }) => stdout()).join("");
      await pollUntil(() => logged().includes("too many attempts"));
      expect(new Set(logged().match(/"address":"[^"]+"/g))).toEqual(new Set([`"address":"${from}"`]));
    },
  );
});

test.skipIf(nginx.whyMissing !== undefined)("nginx serves no internal file that a backend names", async () => {
  using backend = startSimulator();
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
  await using balancer = await nginx.start(
    manualBlock("nginx", "ssl_certificate")
      .replace("http://127.0.0.1:8080", gate.url)
      .replace("location / {", 'location /internal { internal; return 200 "secret"; }\n    location / {'),
  );
  const headers = { "x-api-key": gate.key, "x-simulate": "header=X-Accel-Redirect: /internal" };
  const response = await fetch(`${balancer.url}/v1/models`, { headers });
  expect(await response.text()).toContain('"data"');
});
