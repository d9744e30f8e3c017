import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";

interface Row {
  action: string;
  target: string;
  change_id: string | null;
}

describe.skipIf(!hasBrowser)("programs and the record of changes", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startConsole();
  });
  afterAll(() => console[Symbol.asyncDispose]());

  const rowsOf = async (query: string): Promise<Row[]> =>
    (await console.admin.expectOk<{ rows: Row[] }>("GET", `/api/audit?${query}`)).rows;

  test("a token is created, shown once, used, and deleted after a question", async () => {
    await using visit = await console.visit("/settings/account");
    const { page } = visit;
    await page.getByRole("button", { name: "New API token" }).click();
    const form = page.getByRole("dialog", { name: "New API token" });
    await form.getByLabel("Name").fill("deployment");
    await form.getByLabel("Role").selectOption("admin");
    await form.getByLabel("Expires").selectOption("Never");
    await form.getByRole("button", { name: "Create token" }).click();
    const dialog = page.getByRole("dialog", { name: "Token “deployment”" });
    const token = (await dialog.getByRole("code").textContent()) ?? "";
    expect(token).toMatch(/^tgt_[0-9a-f]{40}$/);
    await page.keyboard.press("Escape");
    expect(await dialog.isVisible()).toBe(true);
    await dialog.getByRole("button", { name: "Copy" }).click();
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });

    const useToken = async (): Promise<number> =>
      (await fetch(`${console.program.adminUrl}/api/keys`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await useToken()).toBe(200);
    const row = page.getByRole("row", { name: "deployment" });
    for (const text of [`${token.slice(0, 8)}…`, "admin", "Never"]) await row.getByText(text).first().waitFor();
    expect(await page.content()).not.toContain(token);

    await row.getByRole("button", { name: "Delete the token deployment" }).click();
    const question = page.getByRole("dialog", { name: "Delete “deployment”?" });
    await page.keyboard.press("Enter");
    await question.waitFor({ state: "detached" });
    expect(await useToken()).toBe(200);
    await row.getByRole("button", { name: "Delete the token deployment" }).click();
    await question.getByRole("button", { name: "Delete token" }).click();
    await page.getByText("The token “deployment” was deleted").waitFor();
    await page.getByRole("region", { name: "API tokens" }).waitFor({ state: "detached" });
    expect(await useToken()).toBe(401);
  });

  test("a refused token says why, and the form stays", async () => {
    await using visit = await console.visit("/settings/account", { expectedErrors: /status of 400/ });
    const { page } = visit;
    await page.getByRole("button", { name: "New API token" }).click();
    await page.getByLabel("Name").fill("a".repeat(121));
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByRole("alert").getByText("name must be at most 120 characters").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("changes are listed with who, what, and before and after, and can be filtered", async () => {
    const { id } = await console.admin.createKey("first name");
    await console.admin.updateKey(id, { name: "second name", requests_per_minute: 60 });
    await using visit = await console.visit("/settings/account");
    const { page } = visit;
    await page.getByRole("link", { name: "Changes" }).click();
    const row = page
      .getByRole("row")
      .filter({ hasText: "key.update" })
      .filter({ hasText: `key/${id}` });
    for (const text of ["admin (password)", "admin, 127.0.0.1", "name first name → second name"]) {
      await row.getByText(text).waitFor();
    }
    await row.getByText("requests_per_minute → 60").waitFor();
    await row.getByRole("button", { name: "key.update" }).click();
    await page.getByRole("row").filter({ hasText: "key.create" }).first().waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("?action=key.update");
    await page.getByLabel("Target").fill("key/0");
    await page.keyboard.press("Enter");
    await page.getByText("No matching changes").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByRole("row").filter({ hasText: "key.create" }).first().waitFor();
    await page.getByLabel("Action").fill("key.update");
    await page.keyboard.press("Enter");
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "CSV" }).click();
    const text = await Bun.file(await (await download).path()).text();
    expect(text.trimEnd().split("\r\n").slice(1)).toEqual([expect.stringContaining(`,key.update,key/${id},`)]);
  });

  test("older changes come on scrolling", async () => {
    const { id } = await console.admin.createKey("0");
    for (let n = 1; n <= 120; n++) await console.admin.updateKey(id, { name: String(n) });
    await using visit = await console.visit(`/settings/account/changes?target=key/${id}`);
    const { page } = visit;
    await page.getByText("name 119 → 120").waitFor();
    expect(await page.getByText("key.create").count()).toBe(0);
    await page.getByRole("button", { name: "Show more" }).scrollIntoViewIfNeeded();
    await page.getByText("key.create").waitFor();
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
  });

  test("an action on several keys is one change", async () => {
    const keys = await Promise.all(["bulk a", "bulk b"].map((name) => console.admin.createKey(name)));
    await using visit = await console.visit("/keys?q=bulk");
    const { page } = visit;
    for (const { name } of keys) await page.getByRole("checkbox", { name: `Select ${name}` }).check();
    await page.getByRole("region", { name: "Selected keys" }).getByRole("button", { name: "Switch off" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
    await page.getByText("2 keys were switched off").waitFor();
    const changed = (await Promise.all(keys.map(({ id }) => rowsOf(`action=key.update&target=key/${id}`)))).flat();
    expect(changed).toHaveLength(2);
    expect(changed[0]?.change_id).toBeString();
    expect(new Set(changed.map(({ change_id: id }) => id)).size).toBe(1);
  });
});
