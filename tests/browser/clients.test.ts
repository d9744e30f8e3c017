import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { type ConsoleUnderTest, hasBrowser, startConsole } from "./support/console-under-test.ts";

describe.skipIf(!hasBrowser)("coding agents", () => {
  let console: ConsoleUnderTest;
  let key: string;
  beforeAll(async () => {
    console = await startConsole(undefined, { PROXY_HAN_GUARD: "off" });
    ({ key } = await console.admin.createKey("engineers"));
    const send = async (requestClass: string, id: string, text: string): Promise<void> => {
      const response = await fetch(`${console.program.url}/v1/messages`, {
        method: "POST",
        headers: {
          "x-api-key": key,
          "content-type": "application/json",
          "user-agent": "claude-cli/2.1.332 (external, cli)",
          "x-claude-code-request-class": requestClass,
          "x-request-id": id,
        },
        body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: text }] }),
      });
      await response.text();
    };
    await send("main", "first-request", "a".repeat(2760));
    await send("compaction", "second-request", "a".repeat(1240));
    await pollUntil(async () => {
      const listed = await console.admin.expectOk<{ requests: unknown[] }>("GET", "/api/requests");
      return listed.requests.length === 2;
    });
  });
  afterAll(() => console[Symbol.asyncDispose]());

  test("Usage says what each class of requests took, and leads to them", async () => {
    await using visit = await console.visit("/usage");
    const panel = visit.page.getByRole("region", { name: "Clients", exact: true });
    await panel.getByText("main took 69%, compaction took 31% of the input").waitFor();
    await panel.getByRole("radio", { name: "Class" }).check();
    await panel.getByRole("link", { name: "compaction" }).click();
    await visit.page.waitForURL("**/requests?class=compaction");
  });

  test("Settings says which rules would have helped whom", async () => {
    await using visit = await console.visit("/settings");
    const note = visit.page.getByRole("note").filter({ hasText: "claude-cli/2.1.332" });
    await note.getByText(/^2 requests of claude-cli\/2.1.332 had 1,002 tokens read .* for vLLM, the rules/).waitFor();
    await note.getByRole("link", { name: "What agents send" }).waitFor();
  });

  test("the holder of the key sees its last requests with their ids", async () => {
    await using visit = await console.visit("/me", { anonymous: true });
    const { page } = visit;
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Show my limits and usage" }).click();
    const row = page.getByRole("row").filter({ hasText: "second-request" });
    await row.getByText("claude-cli/2.1.332 · compaction").waitFor();
    await page.getByText("From the cache this month").waitFor();
    expect(await page.getByRole("row").filter({ hasText: "first-request" }).count()).toBe(1);
  });
});
