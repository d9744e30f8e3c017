import type { CDPSession, Page } from "playwright-core";
import { addRequests, requestRow } from "../../store/logged-requests.ts";
import { createRandom } from "../../support/random.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ConsoleUnderTest } from "./console-under-test.ts";
import { seed, seedKeys, usage } from "./seed.ts";

/** What one page of the console costs. */
export interface PageCost {
  /** Responses of the API, as transferred, until the page is complete. */
  firstKb: number;
  firstMainThreadMs: number;
  /** From opening the page to bars in the chart. */
  drawnMs: number;
  refreshKb: number;
  refreshMainThreadMs: number;
}

const minutesPerTransaction = 20;

/**
 * Usage of each key on each day of a year, in each hour of 31 days, and in every fifth minute of the last day, as in the first
 * minutes of an hour: else a page costs more the later in the hour it is measured.
 */
export function seedYear(dataDir: string, keyCount: number): Promise<void> {
  return seed(dataDir, async (store) => {
    const ids = await createKeys(store, keyCount);
    const now = Math.floor(Date.now() / 3_600_000) * 60;
    const minutes = [
      ...Array.from({ length: 288 }, (_, index) => now - index * 5),
      ...Array.from({ length: 30 * 24 }, (_, index) => now - 1440 - index * 60),
      ...Array.from({ length: 335 }, (_, index) => now - (index + 31) * 1440),
    ];
    // In the order of the tables' keys: a transaction for each key would write every page of them again.
    const inOrder = minutes.toSorted((a, b) => a - b);
    for (let from = 0; from < inOrder.length; from += minutesPerTransaction) {
      await store.usage.add(
        inOrder.slice(from, from + minutesPerTransaction).flatMap((minute) =>
          ids.map((id) => {
            const requests = 1 + ((id * 31 + (now - minute) * 7) % 97);
            return usage(id, minute, [requests, requests * 1733, requests * (211 + (id % 13))]);
          }),
        ),
      );
    }
  });
}

/** Made minutes apart, with secrets as the program makes them: neither compresses like a counter. */
const createKeys = (store: Store, keyCount: number): Promise<number[]> =>
  seedKeys(
    store,
    Array.from({ length: keyCount }, (_, index) => `team-${index} service key`),
    { apartMs: 437_281, secret: (index) => new Bun.CryptoHasher("md5").update(`key ${index}`).digest("hex") },
  );

/** Keys of which every hundredth was used in each of the last hours. */
export function seedManyKeys(dataDir: string, keyCount: number): Promise<void> {
  return seed(dataDir, async (store) => {
    const ids = await createKeys(store, keyCount);
    const now = Math.floor(Date.now() / 3_600_000) * 60;
    await store.usage.add(
      ids
        .filter((id) => id % 100 === 1)
        .flatMap((id) =>
          Array.from({ length: 20 }, (_, hour) => usage(id, now - hour * 60, [id, id * 17, hour * 211])),
        ),
    );
  });
}

/** The latest requests of many keys, half of them of the first one, as busy clients leave them. */
export function seedRequests(dataDir: string, count: number): Promise<void> {
  return seed(dataDir, async (store) => {
    const random = createRandom(27);
    const now = Date.now();
    const rows = Array.from({ length: count }, (_, index) => {
      const durationMs = random.below(60_000_000) / 1000;
      const fields = {
        requestId: new Bun.CryptoHasher("md5").update(`request ${index}`).digest("hex"),
        clientAddress: `10.0.${random.below(4)}.${random.below(250)}`,
        clientProgram: random.pick(["claude-cli/1.0.119", "OpenAI/Python 1.109.1", "opencode/0.9"]),
        keyId: index % 2 === 0 ? 1 : 1 + random.below(500),
        modelAsked: random.pick(["claude-sonnet-4-5", "gpt-5", "served-model"]),
        receivedBytes: random.below(900_000),
        queueMs: random.below(900) / 10,
        upstreamMs: random.below(30_000),
        firstByteMs: random.below(30_000_000) / 1000,
        durationMs,
      };
      const tokens = { inputTokens: random.below(180_000), outputTokens: random.below(9000) };
      return requestRow(now - index * 700, fields, tokens);
    });
    await addRequests(store, ...rows);
  });
}

interface Measured {
  path: string;
  /** A request of each refresh. */
  refreshed?: string;
}

/** Opens a page, by default with a chart of usage for each key or for all, and refreshes it once. */
export async function measurePage(
  console: ConsoleUnderTest,
  { path, refreshed = "**/api/usage/chart*" }: Measured,
): Promise<PageCost> {
  await using page = await console.visit("/nowhere", { fresh: true });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const apiBytes = await countApiBytes(session);

  const startedAt = performance.now();
  const firstMainThreadMs = await mainThreadDuring(session, async () => {
    await page.goto(console.program.adminUrl + path);
    await page.locator(".chart path.fill, .sparkline path").first().waitFor({ state: "attached" });
  });
  const drawnMs = performance.now() - startedAt;
  await page.waitForLoadState("networkidle");
  const firstKb = apiBytes.take() / 1000;

  const refreshMainThreadMs = await mainThreadDuring(session, () => refresh(page, refreshed));
  return { firstKb, firstMainThreadMs, drawnMs, refreshKb: apiBytes.take() / 1000, refreshMainThreadMs };
}

/** Fetches the last two buckets of the chart, as in the first minutes of a bucket. */
async function refresh(page: Page, refreshed: string): Promise<void> {
  await page.route(/\/api\/usage\/chart\?.*since=/, async (route) => {
    const url = new URL(route.request().url());
    const { to, bucket_minutes } = Object.fromEntries(url.searchParams);
    url.searchParams.set("since", new Date(Date.parse(to ?? "") - Number(bucket_minutes) * 60_000).toISOString());
    await route.continue({ url: url.href });
  });
  const responded = page.waitForResponse(refreshed);
  await page.getByRole("button", { name: "Refresh" }).click();
  await (await responded).finished();
  await page.waitForLoadState("networkidle");
}

/** CPU time of the page's main thread, milliseconds. Unlike elapsed time, it does not depend on the machine's load. */
export async function mainThreadDuring(session: CDPSession, act: () => Promise<void>): Promise<number> {
  const before = await mainThreadMs(session);
  await act();
  return (await mainThreadMs(session)) - before;
}

async function mainThreadMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN) * 1000;
}

/** Bytes of responses of the API as they were transferred, with their heads. */
async function countApiBytes(session: CDPSession): Promise<{ take: () => number }> {
  await session.send("Network.enable");
  const requests = new Set<string>();
  let bytes = 0;
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    if (new URL(request.url).pathname.startsWith("/api/")) requests.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (requests.has(requestId)) bytes += encodedDataLength;
  });
  return {
    take() {
      const taken = bytes;
      bytes = 0;
      return taken;
    },
  };
}
