import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chooseFrom, logOut } from "./support/menus.ts";
import { downloadOf, hasBrowser, loseSession, password, startConsole } from "./support/console-under-test.ts";
import { waitUntilDrawn } from "./support/seeded-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("API keys", () => {
  const console = shared(() => startConsole());

  const statusOf = async (key: string): Promise<number> => {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`${console.program.url}/v1/models`, { headers })).status;
  };
  const rowOf = (page: Page, name: string) =>
    page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
  const focusedText = (page: Page): Promise<string | undefined> =>
    page.evaluate(() => document.activeElement?.textContent?.trim());

  test("an empty page leads to the first key, which is shown once and works at /v1", async () => {
    await using page = await console.visit("/keys");
    await page.getByText("No API keys yet").waitFor();
    await page.getByRole("button", { name: "Create the first key" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("billing service");
    await page.keyboard.press("Enter");

    const dialog = page.getByRole("dialog", { name: "Key for “billing service”" });
    const secret = (await dialog.getByRole("code").first().textContent()) ?? "";
    expect(secret).toMatch(/^[0-9a-f]{32}$/);
    expect(await statusOf(secret)).toBe(200);

    // An accidental Escape or click outside must not close the dialog: the secret cannot be shown again.
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    expect(await dialog.isVisible()).toBe(true);

    await dialog.getByRole("button", { name: "Copy the key" }).click();
    await dialog.getByText("Copied").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(secret);
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });

    await rowOf(page, "billing service")
      .getByText(`${secret.slice(0, 4)}…${secret.slice(-4)}`)
      .waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  test("without clipboard access, the secret is copied by selection", async () => {
    await using page = await console.visit("/keys");
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.keyboard.press("n");
    await page.getByRole("dialog").getByLabel("Name").fill("no clipboard");
    await page.getByRole("button", { name: "Create key" }).click();
    const copied = page.evaluate(
      () =>
        new Promise((resolve) => {
          document.addEventListener("copy", () => resolve(document.activeElement?.tagName), { once: true });
        }),
    );
    await page.getByRole("button", { name: "Copy the key" }).click();
    expect(await copied).toBe("TEXTAREA");
    await page.getByText("Copied").waitFor();
  });

  test("a key that already exists is refused in the dialog, which keeps the input", async () => {
    await console.admin.createKey("first", { key: "an-own-key-of-some-length" });
    await using page = await console.visit("/keys?new=1", { expectedErrors: /status of 409/ });
    const name = page.getByRole("dialog").getByLabel("Name");
    await name.fill("second");
    await page.getByText("Use an existing key").click();
    await page.getByLabel("Key", { exact: true }).fill("an-own-key-of-some-length");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("alert").getByText("Key already exists").waitFor();
    expect(await name.inputValue()).toBe("second");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("a key is renamed in place: Enter saves, Escape cancels", async () => {
    const { id } = await console.admin.createKey("old name");
    await using page = await console.visit("/keys");
    await chooseFrom(page, "Actions of old name", "Rename");
    await page.getByLabel("New name of old name").fill("not this");
    await page.keyboard.press("Escape");
    await rowOf(page, "old name").waitFor();
    await chooseFrom(page, "Actions of old name", "Rename");
    await page.getByLabel("New name of old name").fill("new name");
    await page.keyboard.press("Enter");
    await rowOf(page, "new name").waitFor();
    await page.reload();
    await rowOf(page, "new name").waitFor();
    expect((await console.admin.listKeys()).find((key) => key.id === id)?.name).toBe("new name");
  });

  test("a switch changes before the server responds, and the next request is refused", async () => {
    const { key } = await console.admin.createKey("switched");
    await using page = await console.visit("/keys");
    const held = Promise.withResolvers<void>();
    await page.route("**/api/keys/*", async (route) => {
      await held.promise;
      await route.continue();
    });
    const toggle = page.getByRole("switch", { name: "switched is active" });
    await toggle.click();
    await page.getByRole("switch", { name: "switched is active", checked: false }).waitFor();
    const responded = page.waitForResponse("**/api/keys/*");
    held.resolve();
    await responded;
    expect(await statusOf(key)).toBe(401);
    await Promise.all([page.waitForResponse("**/api/keys/*"), toggle.click()]);
    expect(await statusOf(key)).toBe(200);
  });

  test("a change that the server refuses is reverted with the reason", async () => {
    await console.admin.createKey("stubborn");
    await using page = await console.visit("/keys", { expectedErrors: /status of 503/ });
    await page.route("**/api/keys/*", (route) => route.fulfill({ status: 503, json: { error: "The disk is full" } }));
    await page.getByRole("switch", { name: "stubborn is active" }).click();
    await page.getByText("“stubborn” was not changed: The disk is full").waitFor();
    await page.getByRole("switch", { name: "stubborn is active", checked: true }).waitFor();
    await page.getByRole("button", { name: "Dismiss" }).click();
  });

  test("a refused rename keeps the text and says why beside the field; leaving the field saves nothing", async () => {
    await console.admin.createKey("stubborn name");
    await using page = await console.visit("/keys?q=name", { expectedErrors: /status of 503/ });
    await chooseFrom(page, "Actions of stubborn name", "Rename");
    const field = page.getByLabel("New name of stubborn name");
    await field.fill("pliant name");
    const sent: string[] = [];
    await page.route("**/api/keys/*", (route) => {
      sent.push(route.request().method());
      return route.fulfill({ status: 503, json: { error: "The disk is full" } });
    });
    await page.getByRole("searchbox").focus();
    expect([sent.length, await field.inputValue()]).toEqual([0, "pliant name"]);
    await page.getByRole("button", { name: "Save the name" }).click();
    await page.getByRole("rowheader").getByText("Not renamed: The disk is full.").waitFor();
    expect(await field.inputValue()).toBe("pliant name");
    await page.unroute("**/api/keys/*");
    await field.press("Enter");
    await rowOf(page, "pliant name").waitFor();
  });

  test("switching off shows what it did and can be undone", async () => {
    const { key } = await console.admin.createKey("by mistake");
    await using page = await console.visit("/keys?q=mistake");
    await page.getByRole("switch", { name: "by mistake is active" }).click();
    await page.getByText("“by mistake” is off: its requests are refused").waitFor();
    expect(await statusOf(key)).toBe(401);
    const switched = page.waitForResponse((response) => response.request().method() === "PATCH");
    await page.getByRole("button", { name: "Undo" }).click();
    await switched;
    expect(await statusOf(key)).toBe(200);
    await page.getByRole("switch", { name: "by mistake is active", checked: true }).waitFor();
  });

  test("a key that is switched off and on again over a slow network stays on, and nothing calls it off", async () => {
    await console.admin.createKey("switched twice");
    await using page = await console.visit("/keys?q=twice");
    const held = Promise.withResolvers<void>();
    await page.route(
      "**/api/keys/*",
      async (route) => {
        await held.promise;
        await route.continue();
      },
      { times: 1 },
    );
    const off = page.waitForRequest((request) => request.method() === "PATCH");
    const toggle = page.getByRole("switch", { name: "switched twice is active" });
    await toggle.click();
    await off;
    const on = page.waitForResponse((response) => response.request().postData() === '{"is_active":true}');
    await toggle.click();
    await waitUntilDrawn(page);
    held.resolve();
    await (await on).finished();
    await waitUntilDrawn(page);
    expect(await page.getByText("is off").count()).toBe(0);
    expect(await toggle.isChecked()).toBe(true);
    const keys = await console.admin.expectOk<{ name: string; is_active: boolean }[]>("GET", "/api/keys");
    expect(keys.find(({ name }) => name === "switched twice")?.is_active).toBe(true);
  });

  test("a key that is on again is not asked about the responses that ran while it was off", async () => {
    await console.admin.createKey("on again");
    await using page = await console.visit("/keys?q=again");
    const held = Promise.withResolvers<void>();
    await page.route("**/api/in-flight", async (route) => {
      await held.promise;
      await route.fulfill({ json: { requests: [], more: true } });
    });
    const asked = page.waitForRequest("**/api/in-flight");
    const toggle = page.getByRole("switch", { name: "on again is active" });
    await toggle.click();
    await asked;
    await page.getByText("“on again” is off: its requests are refused").waitFor();
    const switched = page.waitForResponse((response) => response.request().method() === "PATCH");
    await toggle.click();
    await switched;
    const answered = page.waitForResponse("**/api/in-flight");
    held.resolve();
    await (await answered).finished();
    await waitUntilDrawn(page);
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("after a delete, the focus is in the next row, and after the last one's in the row before", async () => {
    for (const name of ["row 1", "row 2", "row 3"]) await console.admin.createKey(name);
    await using page = await console.visit("/keys?q=row");
    for (const [deleted, next] of [
      ["row 2", "row 3"],
      ["row 3", "row 1"],
    ] as const) {
      await chooseFrom(page, `Actions of ${deleted}`, "Delete");
      await page.getByRole("button", { name: "Delete key" }).click();
      await rowOf(page, deleted).waitFor({ state: "detached" });
      const focused = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
      expect(focused).toBe(`Actions of ${next}`);
    }
  });

  test("keys are found by their visible ends and by the whole key, and sorted by creation", async () => {
    const secret = "own-1234-secret-of-the-search-wxyz";
    await console.admin.createKey("found by its key", { key: secret });
    await console.admin.createKey("created last");
    await using page = await console.visit("/keys?sort=-created");
    await rowOf(page, "created last").waitFor();
    expect((await page.getByRole("rowheader").allTextContents()).slice(0, 2)).toEqual([
      "created last",
      "found by its key",
    ]);
    await page.getByRole("columnheader", { name: "Created" }).and(page.locator("[aria-sort=descending]")).waitFor();
    for (const text of ["own-", "WXYZ", secret]) {
      await page.getByRole("searchbox").fill(text);
      await page.getByText(/^1 of \d+ keys$/).waitFor();
      await rowOf(page, "found by its key").waitFor();
    }
    expect(new URL(page.url()).search).toBe("?sort=-created");
    const csv = await downloadOf(page, () => page.getByRole("button", { name: "CSV" }).click());
    const [header = "", row = ""] = csv.split("\r\n");
    expect(header).toStartWith("id,name,key,is_active,created_at");
    expect(row).toContain("found by its key,own-…wxyz,true,");
  });

  test("the delete dialog names the key and what is lost, offers to deactivate it, and focuses Cancel", async () => {
    const { id, key } = await console.admin.createKey("doomed");
    await using page = await console.visit("/keys");
    const remove = (): Promise<void> => chooseFrom(page, "Actions of doomed", "Delete");
    await remove();
    const dialog = page.getByRole("dialog", { name: "Delete “doomed”?" });
    expect(await dialog.textContent()).toContain("The key cannot be restored");
    expect(await focusedText(page)).toBe("Cancel");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Actions of doomed");

    await remove();
    await dialog.getByRole("button", { name: "Switch off instead" }).click();
    await page.getByRole("switch", { name: "doomed is active", checked: false }).waitFor();

    await remove();
    expect(await dialog.getByRole("button", { name: "Switch off instead" }).count()).toBe(0);
    await dialog.getByRole("button", { name: "Delete key" }).click();
    await page.getByText("“doomed” was deleted").waitFor();
    expect(await rowOf(page, "doomed").count()).toBe(0);
    expect(await statusOf(key)).toBe(401);
    expect((await console.admin.listKeys()).some((listed) => listed.id === id)).toBe(false);
  });

  test("filter, state and sort are part of the URL, and a filter without matches can be cleared", async () => {
    await console.admin.createKey("zebra 2");
    await console.admin.createKey("zebra 10");
    await using page = await console.visit("/keys");
    await page.getByRole("heading", { name: "API keys", level: 1 }).waitFor();
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("ZEBRA");
    await page.waitForURL("**/keys?q=ZEBRA");
    await page.keyboard.press("Tab");
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New API key" }).waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL("**/keys?q=ZEBRA");
    await page.getByRole("button", { name: "Name", exact: true }).click();
    await page.getByRole("columnheader", { name: "Name" }).and(page.locator("[aria-sort=ascending]")).waitFor();
    expect(await page.getByRole("rowheader").allTextContents()).toEqual(["zebra 2", "zebra 10"]);
    await page.reload();
    expect(await page.getByRole("searchbox").inputValue()).toBe("ZEBRA");
    await page.getByRole("radio", { name: "Inactive" }).check();
    await page.getByText("No matching keys").waitFor();
    await page.getByRole("button", { name: "Clear filter" }).click();
    await rowOf(page, "zebra 2").waitFor();
  });

  test("HTML in a name stays text wherever the name appears", async () => {
    const name = `<img src=x onerror="document.title='hacked'"><b>bold</b>`;
    await console.admin.createKey(name);
    await using page = await console.visit("/keys");
    await rowOf(page, name).waitFor();
    await chooseFrom(page, `Actions of ${name}`, "Delete");
    await page.getByRole("heading", { name: `Delete “${name}”?` }).waitFor();
    expect(await page.locator("img, main b").count()).toBe(0);
    expect(await page.title()).toBe("API keys · Tollgate");
  });

  test("a row links to the key's page", async () => {
    const { id } = await console.admin.createKey("curious");
    await using page = await console.visit("/keys");
    await rowOf(page, "curious").getByRole("link").click();
    await page.waitForURL(`**/keys/${id}`);
    await page.getByRole("heading", { name: "curious", level: 1 }).waitFor();
  });

  test("500 keys are listed and can be filtered", async () => {
    await Promise.all(Array.from({ length: 500 }, (_, index) => console.admin.createKey(`load ${index}`)));
    await using page = await console.visit("/keys?q=load");
    await page.getByText(/^500 of \d+ keys$/).waitFor();
    await page.getByRole("searchbox").fill("load 499");
    await rowOf(page, "load 499").waitFor();
    await page.getByText(/^1 of \d+ keys$/).waitFor();
  });

  test.each<[string, (page: Page) => Promise<void>]>([
    ["has loaded", (page) => logOut(page)],
    [
      "could not delete",
      async (page) => {
        await chooseFrom(page, "Actions of seen before", "Delete");
        await page.getByRole("button", { name: "Delete key" }).click();
      },
    ],
    ["could not switch", (page) => page.getByRole("switch", { name: "seen before is active" }).click()],
  ])("those that an expired session %s are not shown to the next one", async (_, notice) => {
    for (const { id, name } of await console.admin.listKeys()) {
      if (name === "seen before") await console.admin.expectOk("DELETE", `/api/keys/${id}`);
    }
    await console.admin.createKey("seen before");
    await using page = await console.visit("/keys?q=seen", { expectedErrors: /status of 401/ });
    await rowOf(page, "seen before").waitFor();
    await page.getByRole("button", { name: "Menu of admin" }).waitFor();
    await loseSession(page);
    await notice(page);
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(password);
    await page.route("**/api/keys*", () => {});
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("table", { name: "API keys" }).waitFor();
    await waitUntilDrawn(page);
    expect(await rowOf(page, "seen before").count()).toBe(0);
  });

  test("without a server, the loaded keys stay, and Try again reloads them", async () => {
    await console.admin.createKey("still here");
    await using page = await console.visit("/keys?q=still", { expectedErrors: /ERR_FAILED|Failed to load/ });
    await rowOf(page, "still here").waitFor();
    await page.route("**/api/keys*", (route) => route.abort());
    await page.getByRole("button", { name: "Refresh" }).click();
    const bar = page.getByRole("alert");
    await bar.getByText(/The server does not respond\. Showing data loaded/).waitFor();
    expect(await rowOf(page, "still here").isVisible()).toBe(true);
    await page.unroute("**/api/keys*");
    await bar.getByRole("button", { name: "Try again" }).click();
    await bar.waitFor({ state: "detached" });
  });
});
