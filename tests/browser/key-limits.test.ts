import { describe, expect, test } from "bun:test";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chooseFrom } from "./support/menus.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("the limits of a key", () => {
  const console = shared(() => startConsole());

  const create = (fields: object) => console.admin.expectOk<{ id: number; key: string }>("POST", "/api/keys", fields);

  async function use(key: string): Promise<number> {
    const response = await fetch(`${console.program.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": "usage=5,7" },
      body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }),
    });
    await response.text();
    return response.status;
  }

  test("are set and cleared in its dialog, and a refused one stays in the field", async () => {
    const { id } = await create({ name: "editable", owner: "Kim" });
    await using page = await console.visit("/keys", { expectedErrors: /400/ });
    await chooseFrom(page, "Actions of editable", "Limits");
    const dialog = page.getByRole("dialog", { name: "Limits and details of “editable”" });
    expect(await dialog.getByLabel("Owner").inputValue()).toBe("Kim");
    const perDay = dialog.getByRole("textbox", { name: "Tokens per day" });
    await perDay.fill("1,5");
    await dialog.getByRole("button", { name: "Save" }).click();
    expect(await perDay.evaluate((field: HTMLInputElement) => field.validity.customError)).toBe(true);
    await perDay.fill("1.5M");
    await dialog.getByText("1,500,000 tokens per day").waitFor();
    await dialog.getByLabel("Allowed models").fill("a*b");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("must have * only at its end").waitFor();
    await dialog.getByLabel("Allowed models").fill("qwen*, gpt");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const read = () => console.admin.expectOk<{ id: number }[]>("GET", "/api/keys");
    const saved = (await read()).find((key) => key.id === id);
    expect(saved).toMatchObject({ tokens_per_day: 1_500_000, allowed_models: ["qwen*", "gpt"], owner: "Kim" });
    await chooseFrom(page, "Actions of editable", "Limits");
    expect(await perDay.inputValue()).toBe("1,500,000");
    const more = dialog.getByLabel("More until the day ends");
    await more.fill("500k");
    await dialog.getByText("500,000 tokens per day", { exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await chooseFrom(page, "Actions of editable", "Limits");
    await dialog.getByText("0 of 2M").waitFor();
    await dialog.getByText(/^Starts anew on .*, without 500K of the limit$/).waitFor();
    expect(await more.inputValue()).toBe("500,000");
    await more.fill("");
    await perDay.fill("");
    for (const label of ["Allowed models", "Owner"]) await dialog.getByLabel(label).fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const cleared = { tokens_per_day: null, allowed_models: null, owner: null, limits_extra: null };
    expect((await read()).find((key) => key.id === id)).toMatchObject(cleared);
  });

  test("are set at creation, folded away, with the details of the key", async () => {
    await using page = await console.visit("/keys?new=1");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("created with limits");
    expect(await dialog.getByLabel("Tokens per day").isVisible()).toBe(false);
    await dialog.getByText("Limits and details").click();
    await dialog.getByText("More limits").click();
    await dialog.getByLabel("Requests per minute").fill("60");
    await dialog.getByLabel("May be used for").selectOption("Inference only");
    await dialog.getByLabel("Expires").fill("2099-12-31T23:59");
    await dialog.getByLabel("Note").fill("two\nlines");
    await dialog.getByLabel("Tags").fill("prod, batch");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog", { name: "Key for “created with limits”" }).waitFor();
    const keys = await console.admin.expectOk<{ name: string }[]>("GET", "/api/keys");
    expect(keys.find(({ name }) => name === "created with limits")).toMatchObject({
      requests_per_minute: 60,
      tokens_per_day: null,
      scope: "inference",
      expires_at: "2099-12-31T23:59:00.000+09:00",
      note: "two\nlines",
      tags: ["prod", "batch"],
    });
  });

  test("filter the keys that are near one, or were refused today", async () => {
    const { key } = await create({ name: "busy", requests_per_minute: 1 });
    await create({ name: "calm", requests_per_minute: 100 });
    expect([await use(key), await use(key)]).toEqual([200, 429]);
    // Refusals are written every few seconds.
    const refused = async (): Promise<boolean> =>
      (await console.admin.expectOk<{ refused_today: number }[]>("GET", "/api/keys")).some(
        (one) => one.refused_today > 0,
      );
    await pollUntil(refused);
    await using page = await console.visit("/keys");
    for (const label of ["Near its limit", "Refused today"]) {
      await page.getByRole("radio", { name: label }).check();
      await page.getByRole("link", { name: "busy" }).waitFor();
      expect(await page.getByRole("link", { name: "calm" }).count()).toBe(0);
    }
    await chooseFrom(page, "Actions of busy", "Limits: nearly used up");
    await page.getByRole("dialog").getByText("1 of 1", { exact: true }).waitFor();
    await page.getByRole("dialog").getByText("1 request refused").waitFor();
    expect(await violations(page)).toEqual([]);
  });

  test("tell NOTICE_URL how much is used, of a key, a team and a user, where that is chosen", async () => {
    const { id } = await create({ name: "told", users_from: "header:x-who" });
    const { admin } = console;
    const { id: teamId } = await admin.expectOk<{ id: number }>("POST", "/api/teams", { name: "told team" });
    await admin.expectOk("POST", "/api/users", { key_id: id, external: "kim", name: "Kim" });
    await using page = await console.visit(`/keys/${id}`);
    const dialog = page.getByRole("dialog");
    const notify = async (isOn: boolean): Promise<void> => {
      await dialog.getByText("More limits").first().click();
      await dialog.getByLabel("Tell NOTICE_URL at 75, 95 and 100 %").setChecked(isOn);
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    const told = async () => {
      const [keys, { teams }, { users }] = await Promise.all([
        admin.expectOk<{ id: number; notify: boolean }[]>("GET", "/api/keys"),
        admin.expectOk<{ teams: { notify: boolean }[] }>("GET", "/api/teams"),
        admin.expectOk<{ users: { notify: boolean }[] }>("GET", "/api/users"),
      ]);
      return [keys.find((one) => one.id === id)?.notify, teams[0]?.notify, users[0]?.notify];
    };
    for (const isOn of [true, false]) {
      await page.goto(`${console.program.adminUrl}/keys/${id}`);
      await page.getByRole("button", { name: "Edit limits" }).click();
      await notify(isOn);
      await page.getByRole("button", { name: "Limits of Kim" }).click();
      await notify(isOn);
      await page.goto(`${console.program.adminUrl}/keys/teams/${teamId}`);
      await page.getByRole("button", { name: "Edit the team" }).click();
      await notify(isOn);
      expect(await told()).toEqual([isOn, isOn, isOn]);
    }
  });

  test("that are used up are those of keys that are accepted, as on the overview", async () => {
    const fields = { requests_per_minute: 1 };
    const atLimit = await Promise.all(["used up", "ended", "turned off"].map((name) => create({ name, ...fields })));
    expect(await Promise.all(atLimit.map(({ key }) => use(key)))).toEqual([200, 200, 200]);
    const [, ended, off] = atLimit;
    await console.admin.updateKey(ended?.id ?? 0, { expires_at: "2026-01-01T00:00:00Z" });
    await console.admin.updateKey(off?.id ?? 0, { is_active: false });
    await using page = await console.visit("/keys?state=at-limit");
    const shown = async (): Promise<number[]> =>
      Promise.all(["used up", "ended", "turned off"].map((name) => page.getByRole("link", { name }).count()));
    await page.getByRole("link", { name: "used up" }).waitFor();
    expect(await shown()).toEqual([1, 0, 0]);
    await page.getByRole("radio", { name: "Inactive" }).check();
    await page.getByRole("link", { name: "ended" }).waitFor();
    expect(await shown()).toEqual([0, 1, 1]);
    await page.getByRole("link", { name: "ended" }).click();
    await page.getByText("Expired", { exact: true }).waitFor();
  });

  test("are shown to the holder of the key at /me, which keeps the key in memory only", async () => {
    const { key } = await create({ name: "mine", tokens_per_day: 1000, note: "confidential" });
    expect(await use(key)).toBe(200);
    await using page = await console.visit("/me", { anonymous: true, expectedErrors: /401/ });
    await page.getByLabel("API key", { exact: true }).fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("This key is unknown, inactive or expired.").waitFor();
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "mine", level: 1 }).waitFor();
    await page.getByText("12 of 1,000").waitFor();
    await page.getByText("Starts anew on").waitFor();
    const lines = page.getByRole("region", { name: "the lines for curl" });
    await lines.getByText(key).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("group", { name: "Tokens by day" }).locator("path.fill").first().waitFor();
    expect(await page.content()).not.toContain("confidential");
    const stored = await page.evaluate(() =>
      [localStorage, sessionStorage].flatMap((storage) => Object.values(storage) as string[]).join(" "),
    );
    expect(page.url()).not.toContain(key);
    expect(stored).not.toContain(key);
    await page.reload();
    await page.getByLabel("API key", { exact: true }).waitFor();
  });

  test("of one key are not shown at /me for another one that may not see its own", async () => {
    const first = await create({ name: "switched off", tokens_per_day: 1000 });
    const gpuOnly = await create({ name: "agent", scope: "gpu" });
    await using page = await console.visit("/me", { anonymous: true, fakeClock: true, expectedErrors: /40[13]/ });
    const input = page.getByLabel("API key", { exact: true });
    await input.fill(first.key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "switched off", level: 1 }).waitFor();
    await console.admin.updateKey(first.id, { is_active: false });
    await page.clock.runFor(10_000);
    await page.getByText("This key is unknown, inactive or expired.").waitFor();
    await input.fill(gpuOnly.key);
    await page.keyboard.press("Enter");
    await page.getByText("This API key may only post GPU samples.").waitFor();
    await input.waitFor();
    expect(await page.getByText("switched off").count()).toBe(0);
  });

  test("a masked key, as the console shows it, is called unknown at /me", async () => {
    await using page = await console.visit("/me", { anonymous: true });
    await page.getByLabel("API key", { exact: true }).fill("3f2a…9c1b");
    await page.keyboard.press("Enter");
    await page.getByText("This key is unknown, inactive or expired.").waitFor();
  });
});

test.skipIf(!hasBrowser)("a key's holder sees its limits when the console has its own port", async () => {
  await using console = await startConsole(undefined, { ADMIN_PORT: String(findFreePort()) });
  const mine = { name: "mine", requests_per_minute: 5 };
  const { key } = await console.admin.expectOk<{ key: string }>("POST", "/api/keys", mine);
  const { key: gpuKey } = await console.admin.createKey("agent", { scope: "gpu" });
  await using page = await console.visit("/me", { anonymous: true, expectedErrors: /403|404/ });
  await page.getByLabel("API key", { exact: true }).fill(gpuKey);
  await page.keyboard.press("Enter");
  await page.getByText("This API key may only post GPU samples.").waitFor();
  await page.getByLabel("API key", { exact: true }).fill(key);
  await page.keyboard.press("Enter");
  await page.getByText("0 of 5", { exact: true }).waitFor();
  await page.getByText("This key has no tokens in 30 days").waitFor();
  // Its page has another port than `/v1`, which only the operator knows.
  await page.getByText("Replace ADDRESS with the address of /v1").first().waitFor();
});
