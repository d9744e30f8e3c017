import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { type AdminClient, logIn } from "../../support/admin-client.ts";
import { buildConsole } from "../../support/built-program.ts";
import { type Program, type ProgramEnvironment, startProgram } from "../../support/program.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

export const chromiumPath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Without Chromium these tests are skipped. CI sets TOLLGATE_NEEDS_BROWSER, so that they fail instead. */
export const hasBrowser = existsSync(chromiumPath) || process.env["TOLLGATE_NEEDS_BROWSER"] !== undefined;

export const password = "correct horse battery staple";

/** A host name that Chromium resolves to this machine and does not treat as localhost. */
export const lanName = "tollgate.test";

/**
 * Features of Chromium's own windows that cost more CPU time than the page in them: two pages for suggestions of its
 * address field, and a renderer that is never used. The others are those that Playwright (1.65.1) disables: Chromium
 * reads the last of several such flags.
 */
const disabledFeatures = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "SpareRendererForSitePerProcess",
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "TcpPortRandomizationWin",
  "ThirdPartyStoragePartitioning",
];

export const launchFlags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  `--disable-features=${disabledFeatures.join(",")}`,
  `--host-resolver-rules=MAP ${lanName} 127.0.0.1`,
];

export interface VisitOptions {
  scheme?: "light" | "dark";
  /** A phone's screen size and touch input. */
  phone?: boolean;
  /** Without a session. */
  anonymous?: boolean;
  origin?: string;
  /** The browser's time zone, as in the IANA database. */
  timeZone?: string;
  /** Lets the test control the page's time. */
  fakeClock?: boolean;
  /** Lines in the browser's console that the test causes on purpose. */
  expectedErrors?: RegExp;
  /**
   * The test neither routes requests nor leaves anything in the page but its size and color scheme: the page is handed to
   * the next such test of this console, which saves a browser profile and the parsing of the console's code.
   */
  onlyLooks?: boolean;
}

/** A browser profile with one page. Disposing it fails the test if the page logged an error or sent a request elsewhere. */
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

let launched: Promise<Browser> | undefined;

/** One browser for all tests of this process: each visit has a profile of its own. It ends with the process. */
const sharedBrowser = (): Promise<Browser> => (launched ??= launch());

/** Bun kills what a test has started that takes too long. The next one launches another. */
async function launch(): Promise<Browser> {
  const forget = (): void => {
    launched = undefined;
  };
  try {
    const browser = await chromium.launch({ executablePath: chromiumPath, args: launchFlags });
    return browser.on("disconnected", forget);
  } catch (error) {
    forget();
    throw error;
  }
}

/** Starts the program with a simulated backend. @param prepare fills the data folder first */
export async function startConsole(
  prepare?: (dataDir: string) => Promise<void>,
  environment: ProgramEnvironment = {},
): Promise<ConsoleUnderTest> {
  buildConsole();
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
  const open = async (path: string, options: VisitOptions): Promise<OpenVisit> =>
    openVisit(await sharedBrowser(), program.adminUrl, admin.cookie, path, options);
  const looking = createReuse(open, program.adminUrl);
  return {
    program,
    simulator,
    admin,
    visit: (path, options = {}) => (options.onlyLooks === true ? looking.visit(path, options) : open(path, options)),
    async [Symbol.asyncDispose]() {
      await looking.close();
      // Its data is deleted next, so it need not shut down cleanly.
      await program.stop("SIGKILL");
      simulator.stop();
      folder.remove();
    },
  };
}

interface OpenVisit extends Visit {
  /** What has gone wrong in the page so far. */
  problems: readonly string[];
}

/** Visits that only look: each takes over a page that an earlier one with the same options has left, if there is one. */
function createReuse(open: (path: string, options: VisitOptions) => Promise<OpenVisit>, adminUrl: string) {
  const left = new Map<string, OpenVisit[]>();
  const takeOver = async ({ page }: OpenVisit, path: string, options: VisitOptions): Promise<void> => {
    await page.setViewportSize(viewportOf(options));
    await page.emulateMedia({ colorScheme: options.scheme ?? "light", media: null });
    await page.goto((options.origin ?? adminUrl) + path);
    await page.getByRole("heading", { level: 1 }).waitFor();
  };
  return {
    async visit(path: string, options: VisitOptions): Promise<Visit> {
      const kind = JSON.stringify(options);
      const idle = left.get(kind)?.pop();
      if (idle !== undefined) await takeOver(idle, path, options);
      const visit = idle ?? (await open(path, options));
      return {
        page: visit.page,
        context: visit.context,
        async [Symbol.asyncDispose]() {
          // Closing reports the problems.
          if (visit.problems.length > 0) return visit[Symbol.asyncDispose]();
          left.set(kind, [...(left.get(kind) ?? []), visit]);
        },
      };
    },
    close: async (): Promise<void> => {
      await Promise.all([...left.values()].flat().map((visit) => visit[Symbol.asyncDispose]()));
    },
  };
}

const viewportOf = ({ phone = false }: VisitOptions): { width: number; height: number } =>
  phone ? { width: 390, height: 844 } : { width: 1280, height: 800 };

async function openVisit(
  browser: Browser,
  adminUrl: string,
  cookie: string,
  path: string,
  options: VisitOptions,
): Promise<OpenVisit> {
  const { scheme = "light", phone = false, anonymous = false, origin = adminUrl, timeZone } = options;
  const context = await browser.newContext({
    colorScheme: scheme,
    reducedMotion: "reduce",
    viewport: viewportOf(options),
    isMobile: phone,
    hasTouch: phone,
    acceptDownloads: true,
    ...(timeZone === undefined ? {} : { timezoneId: timeZone }),
    permissions: origin === adminUrl ? ["clipboard-read", "clipboard-write"] : [],
  });
  if (!anonymous) await addSession(context, adminUrl, cookie);
  // Shorter than the timeout of a test, after which Bun kills the program that later tests need.
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  if (options.fakeClock === true) await page.clock.install();
  const problems = collectProblems(page, origin, options.expectedErrors);
  await page.goto(origin + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return {
    page,
    context,
    problems,
    async [Symbol.asyncDispose]() {
      // What a test answers for the server may be under way while the page closes.
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await context.close();
      if (problems.length === 0) return;
      const message = `Problems in the page:\n${problems.join("\n")}`;
      // Bun does not print the second of two errors (1.4.5), and the test may have failed because of these.
      globalThis.console.error(message);
      throw new Error(message);
    },
  };
}

async function addSession(context: BrowserContext, adminUrl: string, cookie: string): Promise<void> {
  const [name = "", ...value] = cookie.split("=");
  const { hostname } = new URL(adminUrl);
  await context.addCookies([
    { name, value: value.join("="), domain: hostname, path: "/", httpOnly: true, secure: true, sameSite: "Lax" },
  ]);
  await context.addInitScript(() => localStorage.setItem("tollgate.session", "yes"));
}

function collectProblems(page: Page, origin: string, expectedErrors: RegExp | undefined): string[] {
  const problems: string[] = [];
  page.on("console", (line) => {
    if (expectedErrors?.test(line.text()) !== true) problems.push(`${line.type()}: ${line.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`thrown: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (target !== origin && protocol !== "data:" && protocol !== "blob:") problems.push(`request to ${request.url()}`);
  });
  return problems;
}
