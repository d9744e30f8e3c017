import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { countPresses, downloadOf, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys, usage } from "./support/seed.ts";
import { requestRow, requestsOf } from "../store/logged-requests.ts";
import { csvOf } from "./support/usage-console.ts";
import { violations } from "./support/axe.ts";
import { shared } from "../support/shared.ts";

/** The middle of the month before, in Seoul. */
function lastMonth(): number {
  const day = new Date(Date.now() + 9 * 3_600_000);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() - 1, 15, 3);
}

describe.skipIf(!hasBrowser)("what people ask of Usage", () => {
  const console = shared(async () => {
    const started = await startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        for (const [index, tags] of [["lab"], ["lab", "night"], []].entries())
          await store.keys.create({
            name: `key ${index + 1}`,
            key: `seeded-key-${index}-0123456789abcdef`,
            createdAt: 0,
            tags,
          });
        const minute = Math.floor(lastMonth() / 60_000);
        await store.usage.add([
          { ...usage(1, minute, [3, 200_000_000, 0]), teamId: 1, model: "m" },
          { ...usage(2, minute, [1, 14_360_000, 0]), teamId: 2, model: "m" },
          { ...usage(3, minute, [1, 34_520_000, 0]), model: "m" },
        ]);
        const models = [{ pattern: "*", valid_from: "2020-01-01", input: 1, cached_input: null, output: 1 }];
        await store.settings.set("prices", JSON.stringify({ currency: "EUR", models, energy: [] }));
      }),
    );
    for (const name of ["red", "blue"]) await started.admin.expectOk("POST", "/api/teams", { name });
    return started;
  });

  const panel = (page: Page): Locator => page.getByRole("region", { name: "Usage and cost" });

  test("what team red cost last month takes two clicks", async () => {
    await using page = await console.visit("/");
    const presses = await countPresses(page);
    await page.getByRole("link", { name: "Usage", exact: true }).click();
    await page.getByRole("radio", { name: "Last month" }).check();
    await panel(page)
      .getByRole("row", { name: /^red .*€200\.00/ })
      .waitFor();
    expect(await presses()).toBe(2);
    expect(await violations(page)).toEqual([]);
  });

  test("last month for finance, as a file, takes three", async () => {
    await using page = await console.visit("/");
    const presses = await countPresses(page);
    await page.getByRole("link", { name: "Usage", exact: true }).click();
    await page.getByRole("radio", { name: "Last month" }).check();
    await panel(page).getByRole("row", { name: /^red / }).waitFor();
    const csv = panel(page).getByRole("button", { name: "CSV", disabled: false });
    const lines = (await downloadOf(page, () => csv.click())).trimEnd().split("\r\n");
    expect(await presses()).toBe(3);
    expect(lines.slice(1)).toEqual([
      "1,red,3,200000000,0,0,200,false",
      "0,No team,1,34520000,0,0,34.52,false",
      "2,blue,1,14360000,0,0,14.36,false",
    ]);
    await page.getByText(/Teams are counted since \d+ \w+( \d+)?; before that, group by tag or owner\./).waitFor();
  });

  test("a key that is deleted, and labels that change, leave last month as it was", async () => {
    await using page = await console.visit("/usage?range=last-month&by=tag");
    await panel(page)
      .getByRole("row", { name: /^lab .*€214\.36/ })
      .waitFor();
    await page.getByText("the rows add up to more").waitFor();
    const before = await csvOf(page, "Usage and cost");
    await console.admin.expectOk("DELETE", "/api/keys/2");
    await console.admin.updateKey(1, { tags: ["elsewhere"] });
    await page.reload();
    await panel(page)
      .getByRole("row", { name: /^3 rows .*€248\.88/ })
      .waitFor();
    expect(await csvOf(page, "Usage and cost")).toEqual(before);
    const models = [{ pattern: "*", valid_from: "2020-01-01", input: 2, cached_input: null, output: 1 }];
    await console.admin.expectOk("PUT", "/api/prices", { currency: "EUR", models, energy: [] });
    await page.reload();
    await panel(page)
      .getByRole("row", { name: /^3 rows .*€497\.76/ })
      .waitFor();
    await panel(page)
      .getByText(/Prices changed on \d+ \w+( \d+)?\./)
      .waitFor();
  });

  describe("a burst", () => {
    const burstAt = Math.floor(Date.now() / 60_000 - 150) * 60_000;
    const burst = shared(() =>
      startConsole((dataDir) =>
        seed(dataDir, async (store) => {
          const [quiet = 0, loud = 0] = await seedKeys(store, ["quiet", "loud"]);
          for (let minute = -30; minute < 30; minute += 1) {
            const recordedAt = burstAt + minute * 60_000;
            await store.gpu.add({ keyId: quiet, recordedAt, readings: [reading(0)] });
          }
          const rows = Array.from({ length: 40 }, (_, index) =>
            requestRow(
              burstAt + index * 1000,
              { keyId: index === 0 ? quiet : loud, requestId: `r-${index}` },
              { inputTokens: 1000, outputTokens: 100 },
            ),
          );
          const minute = burstAt / 60_000;
          await store.usage.add(
            [usage(quiet, minute, [1, 1000, 100]), usage(loud, minute, [39, 39_000, 3900])],
            undefined,
            [],
            requestsOf(...rows),
          );
        }),
      ),
    );

    /** Drags over the minutes around the burst in a chart of the last day. */
    async function select(page: Page, chart: Locator): Promise<void> {
      await chart.locator("path").first().waitFor({ state: "attached" });
      await chart.scrollIntoViewIfNeeded();
      const box = await chart.boundingBox();
      if (box === null) throw new Error("The chart is not visible");
      const now = Date.now();
      const xAt = (at: number): number => box.x + 52 + (box.width - 60) * (1 - (now - at) / 86_400_000);
      await page.mouse.move(xAt(burstAt - 9 * 60_000), box.y + 60);
      await page.mouse.down();
      await page.mouse.move(xAt(burstAt + 9 * 60_000), box.y + 60, { steps: 5 });
      await page.mouse.up();
    }

    test("of power says who it was, in three presses, with the way to the requests", async () => {
      await using page = await burst.visit("/");
      const presses = await countPresses(page);
      await page.getByRole("link", { name: "Backends", exact: true }).first().click();
      await page.getByRole("link", { name: "GPUs", exact: true }).first().click();
      await select(page, page.getByRole("group", { name: "Power of all GPUs over time" }));
      await panel(page)
        .getByRole("row", { name: /^loud 39 39,000 3,900/ })
        .waitFor();
      expect(await presses()).toBe(3);
      await panel(page).getByText("By the request log.").waitFor();
      await panel(page).getByRole("radio", { name: "Client" }).check();
      await panel(page)
        .getByRole("row", { name: /^OpenAI 40 / })
        .waitFor();
      await panel(page).getByRole("radio", { name: "Key", exact: true }).check();
      await panel(page).getByRole("link", { name: "39" }).click();
      await page.waitForURL(/\/requests\?key=2&since=.*&until=/);
      await page.locator("tr[data-row]").first().waitFor();
      expect(await page.locator("tr[data-row]").count()).toBe(39);
    });

    test("of tokens says who it was, by the minute where the log reaches, else by the hour", async () => {
      await using page = await burst.visit("/usage");
      await select(page, page.getByRole("group", { name: "Output tokens by key over time" }));
      await page.waitForURL(/from=.*&to=/);
      await panel(page).getByText("By the request log.").waitFor();
      await panel(page)
        .getByRole("row", { name: /^2 rows 40 40,000 4,000/ })
        .waitFor();
      await panel(page).getByRole("radio", { name: "Day", exact: true }).check();
      await panel(page)
        .getByText(/By whole hours, .*:00 – .*:00 KST\./)
        .waitFor();
    });
  });
});
