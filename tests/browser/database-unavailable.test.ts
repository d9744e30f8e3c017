import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { hasBrowser, password, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

setDefaultTimeout(90_000);

const expectedErrors = /status of 503/;
/** Longer than the refresh interval of any page. */
const timeout = 40_000;

const notice = (page: Page) => page.getByRole("alert").getByText("The database is not available, try again later.");

describe.skipIf(!hasBrowser || whyNoPostgres !== undefined)("while the database is unavailable", () => {
  const postgres = shared(() => startPostgres());
  const console = shared(async () => {
    const environment = { DATABASE_URL: await postgres.createDatabase(), SECRET_KEY: "0123456789abcdef" };
    return startConsole(undefined, environment);
  });
  beforeAll(() => console.admin.createKey("alpha"));

  async function withoutDatabase(act: () => Promise<void>): Promise<void> {
    await postgres.stop();
    try {
      await act();
    } finally {
      await postgres.start();
    }
  }

  test("every open page reports it, keeps its data, and recovers by itself", async () => {
    const paths = ["/", "/keys", "/usage", "/gpus", "/gpus/0"];
    const pages: Page[] = [];
    await using opened = new AsyncDisposableStack();
    for (const path of paths) pages.push(opened.use(await console.visit(path, { expectedErrors })));
    await pages[1]?.getByText("alpha").first().waitFor();
    for (const page of pages) await page.getByRole("button", { name: "Refresh" }).waitFor();
    await withoutDatabase(async () => {
      for (const page of pages) {
        await page.getByRole("button", { name: "Refresh" }).click();
        await notice(page).waitFor({ timeout });
        await page.getByRole("heading", { level: 1 }).waitFor();
      }
      expect(await pages[1]?.getByText("alpha").first().isVisible()).toBe(true);
    });
    for (const page of pages) await notice(page).waitFor({ state: "detached", timeout });
    expect(pages.map((page) => new URL(page.url()).pathname)).toEqual(paths);
  });

  test("a reloaded page reports it, and appears once the database is back", async () => {
    await using page = await console.visit("/keys", { expectedErrors });
    await withoutDatabase(async () => {
      await page.reload();
      await notice(page).waitFor({ timeout });
    });
    await page.getByText("alpha").first().waitFor({ timeout });
    expect(new URL(page.url()).pathname).toBe("/keys");
  });

  test("the login page reports it, and works once the database is back", async () => {
    await using page = await console.visit("/login", { anonymous: true, expectedErrors });
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(password);
    await withoutDatabase(async () => {
      await page.getByRole("button", { name: "Log in" }).click();
      await notice(page).waitFor({ timeout });
    });
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  });

  test("a new key is refused with the reason, and created once the database is back", async () => {
    await using page = await console.visit("/keys?new=1", { expectedErrors });
    await page.getByRole("dialog").getByLabel("Name").fill("beta");
    // The page renders while the session is resumed, which needs the database.
    await page.getByRole("button", { name: "Menu of admin" }).waitFor();
    await withoutDatabase(async () => {
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("dialog").getByText("The database is not available").waitFor();
    });
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Copy the key" }).waitFor();
  });
});
