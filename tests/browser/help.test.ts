import { describe, expect, test } from "bun:test";
import { findFreePort } from "../support/free-port.ts";
import { logOut } from "./support/menus.ts";
import { violations } from "./support/axe.ts";
import { hasBrowser, loseSession, password, startConsole, type Visit } from "./support/console-under-test.ts";
import { startBackends } from "../support/several-backends.ts";
import { startTrafficConsole, trafficModel } from "./support/traffic-console.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("help", () => {
  const traffic = shared(() => startTrafficConsole());

  const openClient = async ({ page }: Visit, label: string) => {
    await page.getByRole("radio", { name: label, exact: true }).check();
    const lines = page.getByRole("region", { name: `the lines for ${label}` });
    await lines.waitFor();
    return lines;
  };

  test("the quick start shows a client, and copies its lines for this address and the served model", async () => {
    await using visit = await traffic.console.visit("/help");
    const { page } = visit;
    const { url } = traffic.console.program;
    await page.getByText(trafficModel).first().waitFor();
    for (const label of ["OpenAI, Python", "Claude Code", "Codex", "Open WebUI", "Qwen Code"]) {
      const lines = await openClient(visit, label);
      expect(await page.locator(".quick-start pre").count()).toBe(1);
      expect(await lines.textContent()).toContain(url);
    }
    const lines = await openClient(visit, "VS Code");
    await page.getByRole("button", { name: /^Copy/ }).click();
    await page.getByText("Copied").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe((await lines.textContent()) ?? "");
    expect(await violations(page)).toEqual([]);
  });

  test("of a file of models, the lines have the model and the context that its key may use", async () => {
    using backends = startBackends({ one: "" });
    const file = await Bun.file(backends.file).text();
    await Bun.write(
      backends.file,
      file.replace("m: {", "small: { backends: [one], context_tokens: 131072, max_output_tokens: 8192 }\n  m: {"),
    );
    await using own = await startConsole(undefined, { MODELS_FILE: backends.file });
    const { key } = await own.admin.createKey("of-help");
    await using visit = await own.visit("/help");
    const { page } = visit;
    const lines = await openClient(visit, "opencode");
    await lines.getByText('"tollgate/small"').waitFor();
    await page.getByText("Replace CONTEXT").waitFor();
    expect(await lines.textContent()).not.toContain("202752");
    await page.getByLabel(/^API key/).fill(key);
    await page.getByLabel(/^API key/).press("Tab");
    await lines.getByText('"context": 131072').waitFor();
    expect(await lines.textContent()).toContain(key);
    expect(await lines.textContent()).toContain('"output": 8192');
    await page.getByRole("combobox", { name: "Model" }).selectOption("m");
    await lines.getByText('"context": 202752').waitFor();
  });

  test("the settings of Claude Code are a file to download, with the caps of this server", async () => {
    await using visit = await traffic.console.visit("/help");
    const { page } = visit;
    await page.getByText(trafficModel).first().waitFor();
    await openClient(visit, "Claude Code");
    await page.getByText("PROXY_SSE_KEEPALIVE=15").waitFor();
    const downloads = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download settings file" }).click();
    const download = await downloads;
    expect(download.suggestedFilename()).toBe("settings.json");
    expect(await Bun.file(await download.path()).json()).toMatchObject({
      env: { ANTHROPIC_MODEL: trafficModel, CLAUDE_CODE_MAX_OUTPUT_TOKENS: "16384" },
    });
  });

  test("with a key, the lines for curl work", async () => {
    await using visit = await traffic.console.visit("/help");
    await visit.page.getByLabel(/^API key/).fill(traffic.key.key);
    await visit.page.getByLabel(/^API key/).press("Tab");
    const lines = visit.page.getByRole("region", { name: "the lines for curl" });
    await lines.getByText(traffic.key.key).waitFor();
    await lines.getByText(trafficModel).waitFor();
    const command = (await lines.textContent()) ?? "";
    const shell = Bun.spawn(["sh", "-c", command], { stderr: "ignore" });
    expect(await new Response(shell.stdout).text()).toContain("data: [DONE]");
  });

  test("the playground streams a response with a pasted key, which leaves no trace", async () => {
    await using visit = await traffic.console.visit("/help/playground", { expectedErrors: /ERR_INCOMPLETE/ });
    const { page } = visit;
    await page.getByLabel("Model").fill("claude-x");
    await page.getByLabel(/^API key/).fill(traffic.key.key);
    await page.getByRole("button", { name: "Send" }).click();
    const response = page.getByRole("region", { name: "Response" });
    await response.getByText("Status 200").waitFor();
    await response.getByText("claude-x").waitFor();
    await response.getByText("See it in the request log").waitFor();
    const figure = (label: string) =>
      response
        .locator(".figure")
        .filter({ has: page.getByText(label, { exact: true }) })
        .locator(".value")
        .textContent();
    expect(await figure("First byte")).toMatch(/\d m?s$/);
    expect(Number((await figure("Output tokens"))?.replaceAll(",", ""))).toBeGreaterThan(0);
    expect((await response.locator(".response-text").last().textContent())?.length).toBeGreaterThan(0);
    expect(await violations(page)).toEqual([]);
    const stored = await page.evaluate(() =>
      JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)]),
    );
    expect(stored + page.url()).not.toContain(traffic.key.key);
    await page.reload();
    expect(await page.getByLabel(/^API key/).inputValue()).toBe("");
  });

  test.each([
    ["a logout", async ({ page }: Visit) => logOut(page)],
    [
      "a logout of an expired session",
      async (visit: Visit) => {
        await loseSession(visit);
        await logOut(visit.page);
      },
    ],
    [
      "a logout in another tab",
      async ({ context }: Visit) => {
        const other = await context.newPage();
        await other.goto(`${traffic.console.program.adminUrl}/help`);
        await logOut(other);
      },
    ],
  ])("the playground forgets the key after %s", async (_, end) => {
    await using visit = await traffic.console.visit("/login?next=/help/playground", {
      anonymous: true,
      expectedErrors: /status of 401/,
    });
    const { page } = visit;
    const logIn = async (): Promise<void> => {
      await page.getByLabel("Username").fill("admin");
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Log in" }).click();
    };
    await logIn();
    const key = page.getByLabel(/^API key/);
    await key.fill("a-secret");
    await end(visit);
    await page.waitForURL("**/login?next=%2Fhelp%2Fplayground");
    await logIn();
    expect(await key.inputValue()).toBe("");
  });

  test("the playground shows why a request was refused", async () => {
    await using visit = await traffic.console.visit("/help/playground", { expectedErrors: /status of 401/ });
    const { page } = visit;
    await page.getByLabel(/^API key/).fill("no-such-key");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("alert").getByText("Invalid API key.", { exact: true }).waitFor();
    await page.getByText("Status 401").waitFor();
  });

  test("the playground calls a masked key unknown", async () => {
    await using visit = await traffic.console.visit("/help/playground");
    const { page } = visit;
    await page.getByLabel(/^API key/).fill("3f2a…9c1b");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("alert").filter({ hasText: "This key is unknown, inactive or expired." }).waitFor();
    expect(await page.getByText("Waiting…").count()).toBe(0);
  });

  test("the playground waits until a response comes, and no longer once the connection broke", async () => {
    await using visit = await traffic.console.visit("/help/playground", { expectedErrors: /ERR_/ });
    const { page } = visit;
    const broken = Promise.withResolvers<void>();
    await page.route("**/v1/chat/completions", async (route) => {
      await broken.promise;
      await route.abort();
    });
    await page.getByLabel(/^API key/).fill(traffic.key.key);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Waiting…").waitFor();
    broken.resolve();
    await page.getByRole("alert").filter({ hasText: "The connection broke." }).waitFor();
    await page.getByText("No response").waitFor();
    expect(await page.getByText("Waiting…").count()).toBe(0);
  });

  test("explain shows each edit with its reason, and what would be refused, and sends nothing to the backend", async () => {
    await using visit = await traffic.console.visit("/help/explain");
    const { page } = visit;
    const before = traffic.console.simulator.requests.length;
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    const result = page.getByRole("region", { name: "What would be changed" });
    await result.getByRole("heading", { name: "Model name" }).waitFor();
    await result.getByText("PROXY_ALIAS_MODEL is").waitFor();
    expect(await result.getByRole("region", { name: "the body" }).textContent()).toContain(`"${trafficModel}"`);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("textbox", { name: "Body" }).fill("{ no JSON");
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await result.getByText("Nothing: the backend would get the body as it is.").waitFor();
    await page.getByRole("combobox", { name: "Path" }).selectOption("/v1/messages");
    const thinking = { type: "enabled", budget_tokens: 31_999 };
    const body = JSON.stringify({ model: trafficModel, max_tokens: 32_000, thinking });
    await page.getByRole("textbox", { name: "Body" }).fill(body);
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await result.getByRole("heading", { name: "Token limit: not changed" }).waitFor();
    await result.getByText("not above thinking.budget_tokens (31999)").waitFor();
    await page.route("**/api/explain", (route) =>
      route.fulfill({
        json: { refused: "invalid_json", changed: false, body: "", stream: false, model: null, edits: [], kept: [] },
      }),
    );
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await result.getByText("The request would be refused: invalid_json.").waitFor();
    expect(traffic.console.simulator.requests.length).toBe(before);
  });

  test("with a port of its own for /v1, the playground leads to the quick start", async () => {
    await using own = await startConsole(undefined, { ADMIN_PORT: String(findFreePort()) });
    await using visit = await own.visit("/help/playground");
    await visit.page.getByText("/v1 has its own port").waitFor();
  });
});
