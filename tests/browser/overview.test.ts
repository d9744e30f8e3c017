import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { findFreePort } from "../support/free-port.ts";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";

// Bun (1.4.5) forgets the preloaded default after the first file.
// Remove when a preloaded default holds for all files.
setDefaultTimeout(30_000);

describe.skipIf(!hasBrowser)("overview of a new installation", () => {
  test("names the first steps, and leads to the first key", async () => {
    await using console = await startConsole();
    await using visit = await console.visit("/");
    const { page } = visit;
    await page.getByRole("heading", { name: "First steps" }).waitFor();
    await page.getByText(`curl ${console.program.adminUrl}/v1/models -H "Authorization: Bearer KEY"`).waitFor();
    await page.getByText("No GPU has reported yet.").waitFor();
    await page.getByRole("link", { name: "New key" }).click();
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
    await page.goto(`${console.program.adminUrl}/usage`);
    await page.getByText("No requests in these days.").waitFor();
    expect(await page.getByRole("button", { name: "Clear the filter" }).count()).toBe(0);
  });
});

describe.skipIf(!hasBrowser)("a console on a port of its own", () => {
  test("shows no command that asks for /v1 at that port", async () => {
    await using console = await startConsole(undefined, { ADMIN_PORT: String(findFreePort()) });
    await using visit = await console.visit("/");
    const { page } = visit;
    await page.getByText(`curl http://ADDRESS/v1/models -H "Authorization: Bearer KEY"`).waitFor();
    await page.getByText("ADDRESS is where /v1 answers").waitFor();
    await page.goto(`${console.program.adminUrl}/keys?new=1`);
    await page.getByRole("textbox", { name: "Name" }).fill("elsewhere");
    await page.keyboard.press("Enter");
    await page.getByText("Try it").click();
    await page.getByText("curl http://ADDRESS/v1/models").waitFor();
  });
});

describe.skipIf(!hasBrowser)("overview", () => {
  let console: ConsoleUnderTest;
  let key: string;
  beforeAll(async () => {
    console = await startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const [keyId = 0] = await seedKeys(store, ["yesterday's"]);
        const yesterday = Math.floor(Date.now() / 60_000) - 1440;
        await store.usage.add([usage(keyId, yesterday, [4, 400, 4000])]);
      }),
    );
    key = (await console.admin.createKey("caller")).key;
  });
  afterAll(() => console[Symbol.asyncDispose]());

  const ask = (body: object): Promise<Response> =>
    fetch(`${console.program.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }], ...body }),
    });

  test("what was asked today stands against yesterday at this hour", async () => {
    await (await ask({ max_tokens: 8 })).text();
    await (await ask({ max_tokens: 8 })).text();
    await using visit = await console.visit("/");
    const { page } = visit;
    const requests = page.locator(".figure", { hasText: "Requests today" });
    await requests.getByText("2", { exact: true }).waitFor();
    // Around midnight, yesterday's requests are the day's before yesterday.
    await requests.getByText(/^−50% on yesterday by now$|None yesterday by now/).waitFor();
    await page.getByRole("link", { name: "caller" }).waitFor();
    await page.getByRole("link", { name: "2 active keys" }).waitFor();
  });

  test("a request that runs is in flight, and then no longer", async () => {
    const held = Promise.withResolvers<void>();
    console.simulator.handle(async (request, wire) => {
      // The console asks whether the backend answers meanwhile; only the client's request is held.
      if (request.method === "POST") await held.promise;
      wire.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}");
    });
    await using visit = await console.visit("/");
    const figure = visit.page.locator(".figure", { hasText: "In flight now" });
    await figure.getByText("0", { exact: true }).waitFor();
    const running = ask({});
    await figure.getByText("1", { exact: true }).waitFor();
    held.resolve();
    await (await running).text();
    console.simulator.handle(undefined);
    await figure.getByText("0", { exact: true }).waitFor();
  });

  test("a backend that went away is told, and that nothing of the page is lost by it", async () => {
    await using visit = await console.visit("/");
    const { page } = visit;
    await page.getByText("Backend answers").waitFor();
    console.simulator.stop();
    await page.getByText("Backend does not answer").waitFor({ timeout: 25_000 });
    await page.getByRole("link", { name: "caller" }).waitFor();
  });
});
