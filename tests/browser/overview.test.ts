import { beforeAll, describe, expect, test } from "bun:test";
import { findFreePort } from "../support/free-port.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";
import { shared } from "../support/shared.ts";
import { kindNames, remedyOf } from "../../src/watching/states.ts";
import { violations } from "./support/axe.ts";

describe.skipIf(!hasBrowser)("overview of a new installation", () => {
  test("shows the first steps and links to the first key", async () => {
    await using console = await startConsole();
    await using page = await console.visit("/");
    await page.getByRole("heading", { name: "First steps" }).waitFor();
    await page.getByText(`curl ${console.program.adminUrl}/v1/models -H "Authorization: Bearer KEY"`).waitFor();
    await page.locator(".first-steps .done").getByText(`${console.simulator.url} responds.`).waitFor();
    await page.getByText(/^All is well. 0 in flight, 0 tokens\/s at 1 backend.$/).waitFor();
    // Of the lists only that of changes is there before anything was used; here nothing has changed yet.
    expect(await page.getByRole("region").evaluateAll((all) => all.length)).toBe(1);
    await page.getByRole("link", { name: "New key" }).click();
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
    await page.goto(`${console.program.adminUrl}/usage`);
    await page.getByText("No requests in this period").waitFor();
    expect(await page.getByRole("button", { name: "Clear filter" }).count()).toBe(0);
  });
});

describe.skipIf(!hasBrowser)("a new installation without a backend", () => {
  test("has the backend as its first step, with the address and why it does not respond", async () => {
    const url = `http://127.0.0.1:${findFreePort()}`;
    await using console = await startConsole(undefined, { PROXY_UPSTREAM_URL: url });
    await using page = await console.visit("/");
    const first = page.locator(".first-steps > li").first();
    await first.getByRole("heading", { name: "Connect the backend" }).waitFor();
    await first
      .getByText(`No usable response from ${url}: ${new URL(url).host} does not respond (ECONNREFUSED).`)
      .waitFor();
    expect(await page.locator(".first-steps .done").count()).toBe(0);
  });
});

describe.skipIf(!hasBrowser)("a console on its own port", () => {
  test("shows no command that requests /v1 at that port", async () => {
    await using console = await startConsole(undefined, { ADMIN_PORT: String(findFreePort()) });
    await using page = await console.visit("/");
    await page.getByText(`curl http://ADDRESS/v1/models -H "Authorization: Bearer KEY"`).waitFor();
    await page.getByText("Replace ADDRESS with the address of /v1").waitFor();
    await page.goto(`${console.program.adminUrl}/keys?new=1`);
    await page.getByRole("textbox", { name: "Name" }).fill("elsewhere");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("Base URL: http://ADDRESS/v1").waitFor();
  });
});

describe.skipIf(!hasBrowser)("overview", () => {
  let key: string;
  const console = shared(async () =>
    startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const ids = await seedKeys(store, ["one", "two", "three", "four", "five", "six"]);
        const lately = Math.floor(Date.now() / 60_000) - 60;
        await store.usage.add(ids.map((id) => usage(id, lately, [4, 400, 4000])));
      }),
    ),
  );
  beforeAll(async () => {
    key = (await console.admin.createKey("caller")).key;
  });

  const complete = (body: object): Promise<Response> =>
    fetch(`${console.program.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }], ...body }),
    });

  test("the chart is of all keys, and of the five that used most on demand", async () => {
    await using page = await console.visit("/");
    const panel = page.getByRole("region", { name: "Output tokens" });
    await panel.locator(".chart-legend").getByText("All 24K").waitFor();
    expect(await panel.locator("path.fill").count()).toBe(1);
    await panel.getByRole("radio", { name: "Top 5" }).check();
    await panel.locator(".chart-legend").getByText("Other (1 key) 4,000").waitFor();
    expect(await panel.locator("path.fill").count()).toBe(6);
    expect(await violations(page)).toEqual([]);
  });

  test("three lists say what changed, who is near a limit and what is hot, five rows of each", async () => {
    await using page = await console.visit("/");
    const list = (name: string) => page.getByRole("region", { name });
    await list("What changed").getByRole("link", { name: "admin (password): key.create key/7" }).waitFor();
    for (const name of ["Near a limit", "Hot"]) expect(await list(name).count()).toBe(0);
    const since = new Date(Date.now() - 720_000).toISOString();
    await page.route("**/api/overview", async (route) => {
      const response = await route.fetch();
      const near = { kind: "key", id: 7, name: "caller", used: 9, limit: 10, unit: "tokens per day" };
      await route.fulfill({
        response,
        json: {
          ...((await response.json()) as object),
          near_limit: [near, { ...near, kind: "team", id: 3, name: "ml" }],
          hot_gpus: [1, 2, 3, 4, 5].map((id) => ({ gpu_id: id, name: "NVIDIA H200", temp_c: 95 - id })),
          full_backends: [{ name: "gpu-a", places: 8, since }],
        },
      });
    });
    await page.getByRole("button", { name: "Refresh" }).click();
    await list("Hot").getByText("8 of 8 places for 12 min").waitFor();
    expect(await list("Hot").getByRole("link").allTextContents()).toEqual([
      "gpu-a",
      ...[1, 2, 3, 4].map((id) => `GPU ${id}, NVIDIA H200`),
    ]);
    await list("Near a limit").getByText("90% of tokens per day").first().waitFor();
    const links = await list("Near a limit")
      .getByRole("link")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    expect(links).toEqual(["/keys/7", "/keys/teams/3"]);
    expect(await violations(page)).toEqual([]);
    for (const name of ["What changed", "Near a limit", "Hot"]) {
      await list(name).getByRole("link").first().focus();
      await page.waitForResponse("**/api/overview");
      await page.evaluate(() => new Promise((done) => void setTimeout(done)));
      expect(await list(name).locator("a:focus").count()).toBe(1);
    }
    await list("What changed").getByRole("link", { name: "key/7" }).click();
    await page.getByRole("heading", { name: "Changes", level: 1 }).waitFor();
    await page.getByRole("row", { name: /key.create/ }).waitFor();
  });

  test("a running request counts as in flight until it ends", async () => {
    const held = Promise.withResolvers<void>();
    console.simulator.handle(async (request, wire) => {
      // Health checks of the backend pass; only the client's request waits.
      if (request.method === "POST") await held.promise;
      wire.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}");
    });
    await using page = await console.visit("/");
    const load = (inFlight: number) => page.getByRole("link", { name: `${inFlight} in flight, ` });
    await load(0).waitFor();
    const running = complete({});
    await load(1).waitFor();
    held.resolve();
    await (await running).text();
    console.simulator.handle(undefined);
    await load(0).waitFor();
  });

  test("while the server does not answer, it is not said that all is well", async () => {
    await using page = await console.visit("/", { expectedErrors: /503/ });
    await page.getByText("All is well.").waitFor();
    await page.route("**/api/states", (route) => route.fulfill({ status: 503, json: { error: "Not now" } }));
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("Whether all is well is not known.").waitFor();
  });

  test("an unreachable backend is reported, and the page keeps its data", async () => {
    await using page = await console.visit("/");
    await page.getByText("All is well.").waitFor();
    const { url } = console.simulator;
    console.simulator.stop();
    const what = `${new URL(url).host} does not respond (ECONNREFUSED)`;
    await page.getByRole("status").getByText(`${what}, since `).waitFor({ timeout: 25_000 });
    const state = page.getByRole("region", { name: "What is wrong" }).locator("li", { hasText: what });
    await state.getByText(/since \d\d:\d\d KST \(.*\) · /).waitFor();
    await state.getByText("See that its server runs").waitFor();
    await page.getByText("1 thing is wrong.").waitFor();
    await page.getByRole("region", { name: "What changed" }).getByRole("link", { name: what }).waitFor();
    await page.locator(".chart path.fill").first().waitFor();
  });
});

describe.skipIf(!hasBrowser)("what is wrong", () => {
  const console = shared(() => startConsole());
  const since = new Date(Date.now() - 300_000).toISOString();
  const states = kindNames.map((kind) => ({
    kind,
    object: "",
    since,
    what: `${kind} now`,
    remedy: remedyOf(kind),
    instance: "gate/1",
    silenced: kind === "taken_out" ? { until: since, why: "moved away", by: "admin" } : null,
  }));
  const past = [{ ...states[0], what: "PostgreSQL away, 312 counts waited, none lost", until: since, count: 312 }];

  test("is at the top of every page, and each kind has its cause and remedy no further than one click away", async () => {
    await using page = await console.visit("/settings/account");
    await page.route("**/api/states", (route) => route.fulfill({ json: { states, past, unknown_since: since } }));
    await page.getByRole("link", { name: "API keys" }).click();
    await page.getByRole("status").getByText("database_away now, since").waitFor();
    await page.getByRole("link", { name: `and ${states.length - 2} more` }).click();
    for (const { kind, remedy } of states) {
      const item = page.locator(`li[data-kind=${kind}]`);
      await item.getByText(`${kind} now`).waitFor();
      await item.getByText(remedy).waitFor();
    }
    await page.getByText(`${states.length - 1} things are wrong, 1 silenced.`).waitFor();
    await page.getByText(/^Silenced until .* by admin: moved away$/).waitFor();
    await page.getByText("Of other processes not known since").waitFor();
    await page.getByText("What was wrong in the last 30 days (1)").click();
    await page.getByText("PostgreSQL away, 312 counts waited, none lost").waitFor();
    expect(await violations(page)).toEqual([]);
    // A refresh moves no focus.
    await page.locator("li[data-kind=disk] button").focus();
    await page.waitForResponse("**/api/states");
    await page.evaluate(() => new Promise((done) => void setTimeout(done)));
    expect(await page.locator("li[data-kind=disk] button:focus").count()).toBe(1);
    await page.locator("li[data-kind=disk]").getByRole("link", { name: "Handbook" }).click();
    await page.getByRole("heading", { name: "What is wrong" }).waitFor();
  });

  test("is silenced with a reason", async () => {
    console.simulator.stop();
    await using page = await console.visit("/");
    const state = page.locator("li[data-kind=backend_out]");
    await state.getByRole("button", { name: "Silence" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("For").selectOption("an hour");
    await dialog.getByLabel("Why").fill("no backend yet");
    await dialog.getByRole("button", { name: "Silence" }).click();
    await state.getByText(/^Silenced until .*: no backend yet$/).waitFor();
    expect(await page.getByRole("status").getByText("does not respond").count()).toBe(0);
  });
});
