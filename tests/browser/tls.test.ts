import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { type BrowserContext, chromium } from "playwright-core";
import { type Authority, createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { chromiumPath, hasBrowser, lanName, launchFlags, password } from "./support/console-under-test.ts";

const certutil = Bun.which("certutil");

/** A browser that trusts the authority as an administrator makes it: by its certificate in the store of the user. */
async function launchTrusting(authority: Authority | undefined, home: TempFolder): Promise<BrowserContext> {
  const store = home.file(".pki/nssdb");
  mkdirSync(store, { recursive: true });
  const run = (...args: string[]): void =>
    expect(Bun.spawnSync([certutil ?? "", "-d", `sql:${store}`, ...args]).exitCode).toBe(0);
  run("-N", "--empty-password");
  if (authority !== undefined) run("-A", "-t", "C,,", "-n", "Tests", "-i", authority.caFile);
  return await chromium.launchPersistentContext(home.file("profile"), {
    executablePath: chromiumPath,
    args: launchFlags,
    env: { ...process.env, HOME: home.path },
  });
}

describe.skipIf(!hasBrowser || certutil === null || whyNoOpenssl !== undefined)("the console over its own TLS", () => {
  let authority: Authority;
  let program: Program;
  let url: string;
  beforeAll(async () => {
    authority = await createAuthority();
    const { certFile, keyFile } = authority.sign("console", lanName);
    program = await startProgram({ TLS_CERT: certFile, TLS_KEY: keyFile, ADMIN_PASSWORD: password });
    // Not localhost, where a browser would keep the cookie over HTTP too.
    url = program.url.replace("127.0.0.1", lanName);
  });
  afterAll(async () => {
    await program.stop("SIGKILL");
    authority[Symbol.dispose]();
  });

  test("keeps a session in a browser that trusts the authority", async () => {
    using home = createTempFolder();
    const context = await launchTrusting(authority, home);
    const page = await context.newPage();
    await page.goto(`${url}/login`);
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const [cookie] = await context.cookies(url);
    expect(cookie).toMatchObject({ name: "session", secure: true, httpOnly: true, sameSite: "Lax" });
    // The browser turns http: into https: by itself, since nothing here speaks HTTP.
    const response = await page.goto(`${url.replace("https:", "http:")}/login`);
    expect(response?.url()).toStartWith("https://");
    await context.close();
  });

  test("is refused by a browser that does not", async () => {
    using home = createTempFolder();
    const context = await launchTrusting(undefined, home);
    const page = await context.newPage();
    await expect(page.goto(url)).rejects.toThrow("ERR_CERT_AUTHORITY_INVALID");
    await context.close();
  });
});
