import { describe, expect, test } from "bun:test";
import { findFreePort } from "../support/free-port.ts";
import { startProvider, type TestProvider } from "../support/oidc-provider.ts";
import { type ConsoleUnderTest, hasBrowser, password, startConsole } from "./support/console-under-test.ts";
import type { ProgramEnvironment } from "../support/program.ts";
import { logOut } from "./support/menus.ts";

interface SignIn extends AsyncDisposable {
  console: ConsoleUnderTest;
  provider: TestProvider;
}

async function start(environment: ProgramEnvironment = {}): Promise<SignIn> {
  const port = String(findFreePort());
  const consoleUrl = `http://127.0.0.1:${port}`;
  const provider = await startProvider(consoleUrl);
  const console = await startConsole(undefined, {
    PORT: port,
    ADMIN_URL: consoleUrl,
    OIDC_NAME: "Example ID",
    OIDC_ADMIN_GROUPS: "ops",
    OIDC_VIEWER_GROUPS: "readers",
    ...provider.settings,
    ...environment,
  });
  return {
    console,
    provider,
    async [Symbol.asyncDispose]() {
      await console[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(!hasBrowser)("sign-in at a provider", () => {
  test("returns to the requested page, lasts a reload, and ends with the logout of the provider", async () => {
    await using one = await start();
    one.provider.person = { sub: "kim", claims: { name: "Kim", groups: ["readers"] } };
    const options = { anonymous: true, fresh: true, alsoAsks: one.provider.issuer, expectedErrors: /status of 401/ };
    await using page = await one.console.visit("/keys?q=a", options);
    await page.getByRole("link", { name: "Sign in with Example ID" }).click();
    await page.waitForURL("**/keys?q=a");
    await page.getByRole("heading", { name: "API keys", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Menu of Kim" }).waitFor();
    const session = (await page.context().cookies()).find(({ name }) => name === "session");
    expect(session).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax", path: "/" });
    expect(Math.round(((session?.expires ?? 0) - Date.now() / 1000) / 3600)).toBe(12);
    await page.reload();
    await page.getByRole("button", { name: "Menu of Kim" }).waitFor();
    const sids = one.provider.sids();
    expect(await one.provider.logOut("kim", sids.at(-1))).toBe(200);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.waitForURL("**/login?next=*");
  });

  test("says why somebody is not let in, and leaves the password", async () => {
    await using one = await start();
    one.provider.person = { sub: "robin", claims: { name: "Robin", groups: ["staff"] } };
    const options = { anonymous: true, fresh: true, alsoAsks: one.provider.issuer };
    await using page = await one.console.visit("/login", options);
    await page.getByRole("link", { name: "Sign in with Example ID" }).click();
    await page.getByRole("alert").getByText("none of your groups may use this console").waitFor();
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await logOut(page);
    await page.getByRole("link", { name: "Sign in with Example ID" }).waitFor();
  });

  test("with OIDC_ONLY folds the form for the password, and never takes it away", async () => {
    await using one = await start({ OIDC_ONLY: "on" });
    await using page = await one.console.visit("/login", { anonymous: true });
    await page.getByRole("link", { name: "Sign in with Example ID" }).waitFor();
    expect(await page.getByLabel("Username").isVisible()).toBe(false);
    await page.getByText("Log in with the password").click();
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  });

  test("has its addresses in Settings, to be copied", async () => {
    await using one = await start();
    await using page = await one.console.visit("/settings");
    await page.getByRole("button", { name: "Copy the redirect URI" }).click();
    await page.getByText("Copied").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
      `${one.console.program.adminUrl}/login/oidc`,
    );
    await page.getByRole("button", { name: "Copy the back-channel logout URI" }).waitFor();
  });
});
