import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { type AdminClient, logIn } from "../../support/admin-client.ts";
import { type Program, type ProgramEnvironment, startProgram } from "../../support/program.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

const chromiumPath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Without a browser there is nothing to test with. CI says that it has one, and fails where it has not. */
export const hasBrowser = existsSync(chromiumPath) || process.env["TOLLGATE_NEEDS_BROWSER"] !== undefined;

export const password = "correct horse battery staple";

/** A name that Chromium resolves to this machine, and that is neither HTTPS nor localhost. */
export const lanName = "tollgate.test";

const launchFlags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  `--host-resolver-rules=MAP ${lanName} 127.0.0.1`,
];

export interface VisitOptions {
  scheme?: "light" | "dark";
  /** A phone's screen and fingers. */
  phone?: boolean;
  /** Whoever comes without a session. */
  anonymous?: boolean;
  origin?: string;
  /** The test can move the page's time forward. */
  ownClock?: boolean;
  /** Lines in the browser's console that the test itself provokes. */
  provokes?: RegExp;
}

/** One browser profile with one page. Ends by failing the test where the page complained or called elsewhere. */
export interface Visit extends AsyncDisposable {
  page: Page;
  context: BrowserContext;
}

export interface ConsoleUnderTest extends AsyncDisposable {
  program: Program;
  simulator: Simulator;
  admin: AdminClient;
  visit(path: string, options?: VisitOptions): Promise<Visit>;
}

/** A running program with a simulated backend behind it, and a browser in front. @param prepare fills the data folder first */
export async function startConsole(
  prepare?: (dataDir: string) => Promise<void>,
  environment: ProgramEnvironment = {},
): Promise<ConsoleUnderTest> {
  await buildConsole();
  const folder = createTempFolder();
  await prepare?.(folder.path);
  const simulator = startSimulator();
  const program = await startProgram({
    DATA_DIR: folder.path,
    ADMIN_PASSWORD: password,
    PROXY_UPSTREAM_URL: simulator.url,
    ...environment,
  });
  const admin = await logIn(program.adminUrl, "admin", password);
  const browser = await chromium.launch({ executablePath: chromiumPath, args: launchFlags });
  return {
    program,
    simulator,
    admin,
    visit: (path, options = {}) => openVisit(browser, program.adminUrl, admin.cookie, path, options),
    async [Symbol.asyncDispose]() {
      await browser.close();
      // Nothing is kept, so nothing is waited for.
      await program.stop("SIGKILL");
      simulator.stop();
      folder.remove();
    },
  };
}

/** The compiled program holds its own. */
async function buildConsole(): Promise<void> {
  if (process.env["TOLLGATE_BINARY"] !== undefined) return;
  const root = join(import.meta.dir, "../../..");
  const build = Bun.spawn([process.execPath, "--bun", "vite", "build", "console", "--logLevel", "error"], {
    cwd: root,
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await build.exited) !== 0) throw new Error("The console does not build");
}

async function openVisit(
  browser: Browser,
  adminUrl: string,
  cookie: string,
  path: string,
  { scheme = "light", phone = false, anonymous = false, origin = adminUrl, ownClock = false, provokes }: VisitOptions,
): Promise<Visit> {
  const context = await browser.newContext({
    colorScheme: scheme,
    reducedMotion: "reduce",
    viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 800 },
    isMobile: phone,
    hasTouch: phone,
    acceptDownloads: true,
    permissions: origin === adminUrl ? ["clipboard-read", "clipboard-write"] : [],
  });
  if (!anonymous) await enter(context, adminUrl, cookie);
  // Shorter than a test's own limit, whose passing would kill the program for all tests that follow.
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  if (ownClock) await page.clock.install();
  const complaints = listenForComplaints(page, origin, provokes);
  await page.goto(origin + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return {
    page,
    context,
    async [Symbol.asyncDispose]() {
      await context.close();
      if (complaints.length > 0) throw new Error(`The page complained:\n${complaints.join("\n")}`);
    },
  };
}

async function enter(context: BrowserContext, adminUrl: string, cookie: string): Promise<void> {
  const [name = "", ...value] = cookie.split("=");
  const { hostname } = new URL(adminUrl);
  await context.addCookies([
    { name, value: value.join("="), domain: hostname, path: "/", httpOnly: true, secure: true, sameSite: "Lax" },
  ]);
  await context.addInitScript(() => localStorage.setItem("tollgate.session", "yes"));
}

function listenForComplaints(page: Page, origin: string, provokes: RegExp | undefined): string[] {
  const complaints: string[] = [];
  page.on("console", (line) => {
    if (provokes?.test(line.text()) !== true) complaints.push(`${line.type()}: ${line.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (asked !== origin && protocol !== "data:" && protocol !== "blob:") complaints.push(`called ${request.url()}`);
  });
  return complaints;
}
