import { beforeEach, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { violations } from "./support/axe.ts";
import { downloadOf, hasBrowser, showMore, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

interface ListedKey {
  id: number;
  name: string;
  is_active: boolean;
  tags: string[];
  allowed_paths: string[] | null;
}

describe.skipIf(!hasBrowser)("many keys at once", () => {
  const console = shared(() => startConsole());
  // A test that is tried once more finds its keys by name: those of the first try must be gone.
  beforeEach(async () => {
    await Promise.all((await listKeys()).map(({ id }) => console.admin.deleteKey(id)));
  });

  const listKeys = (): Promise<ListedKey[]> => console.admin.expectOk("GET", "/api/keys");
  const createKeys = (names: readonly string[]) => Promise.all(names.map((name) => console.admin.createKey(name)));
  const barOf = (page: Page): Locator => page.getByRole("region", { name: "Selected keys" });
  async function select(page: Page, names: readonly string[]): Promise<void> {
    for (const name of names) await page.getByRole("checkbox", { name: `Select ${name}`, exact: true }).check();
  }

  test("are looked at once for each refresh", async () => {
    await createKeys(["once 1", "once 2", "once 3"]);
    await using page = await console.visit("/nowhere", { fresh: true });
    // How Solid looks at an object: of 10,000 keys, each time takes a fifth of a second.
    await page.addInitScript(() => {
      const look = Object.getOwnPropertyDescriptors.bind(Object);
      Object.assign(globalThis, { looks: 0 });
      Object.getOwnPropertyDescriptors = ((one: object) => {
        if ("total_request_count" in one) Reflect.set(globalThis, "looks", Reflect.get(globalThis, "looks") + 1);
        return look(one);
      }) as typeof Object.getOwnPropertyDescriptors;
    });
    await page.goto(`${console.program.adminUrl}/keys`);
    await page.getByRole("row").filter({ hasText: "once 3" }).waitFor();
    await page.waitForLoadState("networkidle");
    await page.evaluate(() => void Reflect.set(globalThis, "looks", 0));
    const [key] = await listKeys();
    await console.admin.updateKey(key?.id ?? 0, { name: "once renamed" });
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("row").filter({ hasText: "once renamed" }).waitFor();
    await page.waitForFunction(() => document.querySelector(".freshness .busy") === null);
    expect(await page.evaluate((): unknown => Reflect.get(globalThis, "looks"))).toBe(3);
  });

  test("are switched and tagged with one question for all", async () => {
    await createKeys(["switch 1", "switch 2", "switch 3"]);
    await using page = await console.visit("/keys?q=switch", { scheme: "dark" });
    await select(page, ["switch 1", "switch 3"]);
    await barOf(page).getByText("2 keys selected").waitFor();
    expect(await violations(page)).toEqual([]);
    await barOf(page).getByRole("button", { name: "Switch off" }).click();
    const dialog = page.getByRole("dialog");
    // The latest first; some are of the same millisecond.
    await dialog.getByText(/“switch [13]”, “switch [13]”/).waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe("Cancel");
    await dialog.getByRole("button", { name: "Switch off" }).click();
    await page.getByText("2 keys were switched off").waitFor();
    await barOf(page).waitFor({ state: "detached" });
    const states = async () =>
      Object.fromEntries((await listKeys()).map(({ name, is_active: isActive }) => [name, isActive]));
    expect(await states()).toMatchObject({ "switch 1": false, "switch 2": true, "switch 3": false });

    await page.getByRole("checkbox", { name: "Select all keys" }).check();
    await barOf(page).getByRole("button", { name: "Switch on" }).click();
    await dialog.getByRole("button", { name: "Switch on" }).click();
    await page.getByText("3 keys were switched on").waitFor();
    expect(await states()).toMatchObject({ "switch 1": true, "switch 2": true, "switch 3": true });

    for (const [way, tags, left] of [
      ["Add", "blue, red", "blue red"],
      ["Remove", "blue", "red"],
    ] as const) {
      await page.getByRole("checkbox", { name: "Select all keys" }).check();
      await barOf(page).getByRole("button", { name: "Tag" }).click();
      await dialog.getByRole("radio", { name: way }).check();
      await dialog.getByLabel("Tags", { exact: true }).fill(tags);
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
      const tagged = (await listKeys()).filter(({ name }) => name.startsWith("switch "));
      expect(tagged.map((key) => key.tags.join(" "))).toEqual([left, left, left]);
    }
    await page.getByRole("checkbox", { name: "Select all keys" }).check();
    await barOf(page).getByRole("button", { name: "Paths" }).click();
    await dialog.getByLabel("Allowed paths").fill("/v1/chat/*, /v1/models");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await listKeys()).map((key) => key.allowed_paths)).toEqual(
      Array.from({ length: 3 }, () => ["/v1/chat/*", "/v1/models"]),
    );
    await page.getByRole("searchbox").fill("red");
    await page.getByText(/^3 of \d+ keys$/).waitFor();
  });

  test("are put in one team, or in those that their tags name, which are made if that is asked", async () => {
    const [one, two, three] = await Promise.all(
      [["team:ml"], ["team:ops", "x"], []].map((tags, index) => console.admin.createKey(`join ${index}`, { tags })),
    );
    const { id: ml } = await console.admin.expectOk<{ id: number }>("POST", "/api/teams", { name: "ml" });
    const teamsOf = async (): Promise<(number | null)[]> => {
      const keys = await console.admin.expectOk<{ id: number; team_id: number | null }[]>("GET", "/api/keys");
      return [one, two, three].map((key) => keys.find(({ id }) => id === key?.id)?.team_id ?? null);
    };
    await using page = await console.visit("/keys?q=join", { fresh: true });
    const dialog = page.getByRole("dialog");
    await page.getByRole("checkbox", { name: "Select all keys" }).check();
    await barOf(page).getByRole("button", { name: "Team" }).click();
    await dialog.getByRole("combobox", { name: "Team" }).selectOption("ml");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("3 keys were changed").waitFor();
    expect(await teamsOf()).toEqual([ml, ml, ml]);
    const fromTags = async (creates: boolean): Promise<void> => {
      await barOf(page).getByRole("button", { name: "Team" }).click();
      await dialog.getByRole("radio", { name: "From a tag" }).check();
      await dialog.getByLabel("Tags that begin with").fill("team:");
      await dialog.getByLabel("Create a team that is not there").setChecked(creates);
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Save" }).click();
    };
    await page.getByRole("checkbox", { name: "Select all keys" }).check();
    await fromTags(false);
    await dialog.getByText("1 of 3 keys were changed.").waitFor();
    expect((await dialog.getByRole("listitem").allTextContents()).toSorted()).toEqual([
      "join 1: No team is called ops",
      "join 2: No tag begins so",
    ]);
    await dialog.getByRole("button", { name: "Close" }).click();
    await barOf(page).getByText("2 keys selected").waitFor();
    await fromTags(true);
    await dialog.getByText("1 of 2 keys were changed.").waitFor();
    const { teams } = await console.admin.expectOk<{ teams: { id: number; name: string }[] }>("GET", "/api/teams");
    expect(await teamsOf()).toEqual([ml, teams.find(({ name }) => name === "ops")?.id ?? 0, ml]);
  });

  test("are deleted, and those that were not stay selected and are named with the reason", async () => {
    const [, second] = await createKeys(["delete 1", "delete 2", "delete 3"]);
    await using page = await console.visit("/keys?q=delete", { expectedErrors: /status of 503/ });
    await page.route(`**/api/keys/${second?.id}*`, (route) =>
      route.fulfill({ status: 503, json: { error: "The disk is full" } }),
    );
    await page.getByRole("checkbox", { name: "Select all keys" }).check();
    await barOf(page).getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 3 keys?" });
    await dialog.getByText("cannot be restored").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("2 of 3 keys were deleted.").waitFor();
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual(["delete 2: The disk is full"]);
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Close" }).click();
    await barOf(page).getByText("1 key selected").waitFor();
    expect((await listKeys()).filter(({ name }) => name.startsWith("delete ")).map(({ name }) => name)).toEqual([
      "delete 2",
    ]);
  });

  test("stay on the page beyond the first hundred when they are refreshed, until another sort is chosen", async () => {
    const names = Array.from({ length: 150 }, (_, index) => `long ${String(index).padStart(3, "0")}`);
    const last = (await createKeys(names)).find(({ name }) => name === "long 149");
    await using page = await console.visit("/keys?q=long&sort=name");
    const rows = page.getByRole("table", { name: "API keys" }).getByRole("rowheader");
    const refresh = page.getByRole("button", { name: "Refresh" });
    await page.getByText("(50 left)").waitFor();
    expect(await rows.count()).toBe(100);
    await showMore(page);
    await rows.nth(149).waitFor();

    await console.admin.updateKey(last?.id ?? 0, { name: "long renamed" });
    await refresh.click();
    await rows.filter({ hasText: "long renamed" }).waitFor();
    expect(await rows.count()).toBe(150);
    await console.admin.createKey("long zzz");
    await refresh.click();
    await rows.filter({ hasText: "long zzz" }).waitFor();
    expect(await rows.count()).toBe(151);

    await page.getByRole("columnheader", { name: "Created" }).getByRole("button").click();
    await page.getByText("(51 left)").waitFor();
    expect(await rows.count()).toBe(100);
  });

  test("a selected key that the filter hides is left out", async () => {
    await createKeys(["hidden 1", "hidden 2"]);
    await using page = await console.visit("/keys?q=hidden");
    await select(page, ["hidden 1", "hidden 2"]);
    await page.getByRole("searchbox").fill("hidden 2");
    await barOf(page).getByText("1 key selected").waitFor();
    const csv = await downloadOf(page, () => barOf(page).getByRole("button", { name: "Export" }).click());
    const rows = csv.trimEnd().split("\r\n");
    expect(rows.map((row) => row.split(",")[1])).toEqual(["name", "hidden 2"]);
  });

  test("are imported from a file, and their secrets are guarded until they are saved", async () => {
    await console.admin.createKey("here already");
    await using page = await console.visit("/keys");
    await page.getByRole("button", { name: "Import" }).click();
    const dialog = page.getByRole("dialog", { name: "Import API keys" });
    expect(await dialog.getByRole("button", { name: "Create keys" }).isDisabled()).toBe(true);
    const csv = 'name,team\r\n"Kim, Lee",red\r\nhere already,blue\r\n';
    const file = { name: "names.csv", mimeType: "text/csv", buffer: Buffer.from(csv) };
    await dialog.getByLabel("Or a file").setInputFiles(file);
    await dialog.getByText("2 keys will be created: “Kim, Lee”, “here already”.").waitFor();
    await dialog.getByText("A key of such a name exists already").waitFor();
    await dialog.getByText("No team is called “red”, “blue”.").waitFor();
    await dialog.getByLabel("Create the teams that are not there").check();
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create 2 keys" }).click();
    await dialog.getByText("2 of 2 keys created.").waitFor();
    expect(await violations(page)).toEqual([]);
    const secret = (await dialog.getByRole("row").filter({ hasText: "Kim, Lee" }).locator("code").textContent()) ?? "";
    const headers = { authorization: `Bearer ${secret}` };
    expect((await fetch(`${console.program.url}/v1/models`, { headers })).status).toBe(200);
    const { teams } = await console.admin.expectOk<{ teams: { name: string; key_count: number }[] }>(
      "GET",
      "/api/teams",
    );
    expect(teams.map((team) => [team.name, team.key_count])).toEqual(
      expect.arrayContaining([
        ["red", 1],
        ["blue", 1],
      ]),
    );

    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    const asked = page.waitForEvent("dialog").then((question) => question.dismiss());
    await page.evaluate(() => void setTimeout(() => location.reload()));
    await asked;
    expect(await dialog.isVisible()).toBe(true);
    const saved = await downloadOf(page, () => dialog.getByRole("button", { name: "Download CSV" }).click());
    expect(saved).toContain(`"Kim, Lee",${secret}\r\n`);
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(secret);
  });

  test("of an import that fail are named, and the others are created", async () => {
    await using page = await console.visit("/keys", { expectedErrors: /status of 400/ });
    await page.getByRole("button", { name: "Import" }).click();
    const dialog = page.getByRole("dialog", { name: "Import API keys" });
    await dialog.getByLabel("Names").fill("good one\nbad one");
    await page.route("**/api/keys", (route) =>
      route.request().postData()?.includes("bad one") === true
        ? route.fulfill({ status: 400, json: { error: "name is bad" } })
        : route.continue(),
    );
    await dialog.getByRole("button", { name: "Create 2 keys" }).click();
    await dialog.getByText("1 of 2 keys created.").waitFor();
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual(["bad one: name is bad"]);
    expect(await dialog.getByRole("button", { name: "I have saved them" }).isVisible()).toBe(true);
  });
});
