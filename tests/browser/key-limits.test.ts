import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";

describe.skipIf(!hasBrowser)("the limits of a key", () => {
  let console: ConsoleUnderTest;
  beforeAll(async () => {
    console = await startConsole();
  });
  afterAll(() => console[Symbol.asyncDispose]());

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
    await using visit = await console.visit("/keys", { expectedErrors: /400/ });
    const { page } = visit;
    await page.getByRole("button", { name: "Limits of editable" }).click();
    const dialog = page.getByRole("dialog", { name: "Limits of “editable”" });
    expect(await dialog.getByLabel("Owner").inputValue()).toBe("Kim");
    await dialog.getByRole("spinbutton", { name: "Tokens per day" }).fill("5000");
    await dialog.getByLabel("Allowed models").fill("a*b");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("must have * only at its end").waitFor();
    await dialog.getByLabel("Allowed models").fill("qwen*, gpt");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const saved = (await console.admin.listKeys()).find((key) => key.id === id);
    expect(saved).toMatchObject({ tokens_per_day: 5000, allowed_models: ["qwen*", "gpt"], owner: "Kim" });
    await page.getByRole("button", { name: "Limits of editable" }).click();
    await dialog.getByRole("spinbutton", { name: "Tokens per day" }).fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await console.admin.listKeys()).find((key) => key.id === id)).toMatchObject({ tokens_per_day: null });
  });

  test("filter the keys that are near one, or were refused today", async () => {
    const { key } = await create({ name: "busy", requests_per_minute: 1 });
    await create({ name: "calm", requests_per_minute: 100 });
    expect([await use(key), await use(key)]).toEqual([200, 429]);
    await using visit = await console.visit("/keys");
    const { page } = visit;
    for (const label of ["Near its limit", "Refused today"]) {
      await page.getByRole("radio", { name: label }).check();
      await page.getByRole("link", { name: "busy" }).waitFor();
      expect(await page.getByRole("link", { name: "calm" }).count()).toBe(0);
    }
    await page.getByRole("button", { name: "Limits of busy" }).click();
    await page.getByRole("dialog").getByText("1 of 1", { exact: true }).waitFor();
    await page.getByRole("dialog").getByText("1 request refused").waitFor();
  });

  test("are shown to the holder of the key at /me, which keeps the key in memory only", async () => {
    const { key } = await create({ name: "mine", tokens_per_day: 1000, note: "confidential" });
    expect(await use(key)).toBe(200);
    await using visit = await console.visit("/me", { anonymous: true, expectedErrors: /401/ });
    const { page } = visit;
    await page.getByLabel("API key", { exact: true }).fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("This key is unknown, inactive or expired.").waitFor();
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "mine", level: 1 }).waitFor();
    await page.getByText("12 of 1,000").waitFor();
    expect(await page.content()).not.toContain("confidential");
    const stored = await page.evaluate(() =>
      [localStorage, sessionStorage].flatMap((storage) => Object.values(storage) as string[]).join(" "),
    );
    expect(page.url()).not.toContain(key);
    expect(stored).not.toContain(key);
    await page.reload();
    await page.getByLabel("API key", { exact: true }).waitFor();
  });
});
