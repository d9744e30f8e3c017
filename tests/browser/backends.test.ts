import { describe, expect, test } from "bun:test";
import { violations } from "./support/axe.ts";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { showSeveralBackends } from "./support/several-backends.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("the page of backends", () => {
  const console = shared(() => startConsole());

  const stateNow = async (): Promise<string | undefined> => {
    const { backends } = await console.admin.expectOk<{ backends: { state: string }[] }>("GET", "/api/backends");
    return backends[0]?.state;
  };

  test("shows the backend of the environment, which is drained after a question and gets requests again", async () => {
    await using page = await console.visit("/backends");
    const name = new URL(console.simulator.url).host;
    const row = page.getByRole("row").filter({ hasText: name });
    await row.getByText("In", { exact: true }).waitFor();
    await page.getByText("This backend is that of PROXY_UPSTREAM_URL").waitFor();

    await row.getByRole("button", { name: `Take out ${name}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("No other backend is in").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await stateNow()).toBe("in");

    await row.getByRole("button", { name: `Take out ${name}` }).click();
    await dialog.getByRole("button", { name: "Take out", exact: true }).click();
    await row.getByText("Taken out", { exact: true }).waitFor();
    await row.getByText(/^for \d+ s, by admin$/).waitFor();
    expect(await stateNow()).toBe("draining");
    await row.getByRole("button", { name: `Put back ${name}` }).click();
    await row.getByText("In", { exact: true }).waitFor();
    expect(await stateNow()).toBe("in");
  });

  test("says of the only backend that it does not respond, although it is in", async () => {
    await using unreachable = await startConsole(undefined, { PROXY_UPSTREAM_URL: "http://127.0.0.1:9" });
    await using page = await unreachable.visit("/backends");
    const row = page.getByRole("row").filter({ hasText: "127.0.0.1:9" });
    await row.getByText("Does not respond", { exact: true }).waitFor();
    // What it answered.
    await row.getByText(/does not respond \(.*\w.*\)/).waitFor();
    expect(await row.getByText("In", { exact: true }).count()).toBe(0);
  });

  test("says in words how each of several is, and which processes use another file", async () => {
    await using page = await console.visit("/");
    await showSeveralBackends(page);
    await page.reload();
    await page.getByRole("link", { name: "Backends" }).click();
    const row = (name: string) => page.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });
    await row("gpu-a").getByText("61 of 64").waitFor();
    await row("gpu-a").getByText("12 waiting").waitFor();
    await row("gpu-a").getByText("reads 12,346 tokens/s").waitFor();
    await row("gpu-a").getByText("91% a day before").waitFor();
    const points = "First byte of gpu-a: By three minutes of the last hour, 200 ms to 960 ms";
    await row("gpu-a").getByRole("img", { name: points, exact: true }).waitFor();
    await row("gpu-b").getByText("Taken out, still running", { exact: true }).waitFor();
    await row("gpu-c-in-the-other-building").getByText("Out", { exact: true }).waitFor();
    await row("gpu-c-in-the-other-building").getByText("139 errors").waitFor();
    const help = page.getByRole("link", { name: "When a backend is out" });
    expect(await help.getAttribute("href")).toBe("/help/handbook/models-and-backends#when-a-backend-is-out");
    await row("attic").getByText("Spill").waitFor();
    await row("attic").getByText("bge-m3, jina-v4, whisper-large and 2 others").waitFor();
    await page.getByRole("note").getByText("is used by gate-2/4711 (9d0e9d0e9d0e)").waitFor();
    expect(await violations(page)).toEqual([]);
    for (const width of [768, 1024]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    }
    expect(await page.getByRole("note").getByText("gate-1/4711").count()).toBe(0);
  });

  test("asks with the models that nobody else serves", async () => {
    await using page = await console.visit("/");
    await showSeveralBackends(page);
    await page.reload();
    await page.getByRole("link", { name: "Backends" }).click();
    await page.getByRole("button", { name: "Take out gpu-a" }).click();
    await page.getByRole("dialog").getByText("No other backend that is in serves qwen3-coder or glm-5.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Take out gpu-c-in-the-other-building" }).click();
    await page.getByRole("dialog").getByText("It gets no new requests").waitFor();
    expect(await page.getByRole("dialog").locator(".notice").count()).toBe(0);
  });
});
