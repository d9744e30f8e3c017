import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { type Simulator, startSimulator } from "../../support/simulator/simulator.ts";
import { type AdminClient, logIn } from "../../support/admin-client.ts";
import { buildConsole } from "../../support/built-program.ts";
import { type Program, type ProgramEnvironment, startProgram } from "../../support/program.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

/** The headless shell is Chromium without its windows, and takes half the CPU time. */
export const chromiumPath =
  process.env["CHROMIUM"] ??
  ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find((path) => existsSync(path)) ??
  "/usr/bin/chromium";

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
  "--in-process-gpu",
  // As wide as in a browser with windows: the headless shell rounds the width of each character.
  "--font-render-hinting=none",
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
  /** Of another session than the administrator's, of which an anonymous browser does not know. */
  cookie?: string;
  /** The browser's time zone, as in the IANA database. */
  timeZone?: string;
  /** Lets the test control the page's time. */
  fakeClock?: boolean;
  /** Lines in the browser's console that the test causes on purpose. */
  expectedErrors?: RegExp;
  /** Another origin that pages may ask. */
  alsoAsks?: string;
  /**
   * A browser profile that no visit had before and none gets later: for a test that measures, or that leaves in it what
   * nothing undoes, such as a script for each page.
   */
  fresh?: boolean;
}

export interface ConsoleUnderTest extends AsyncDisposable {
  program: Program;
  simulator: Simulator;
  admin: AdminClient;
  /** Disposing the page fails the test if it logged an error or sent a request elsewhere. */
  visit(path: string, options?: VisitOptions): Promise<Page>;
}

let launched: Promise<Browser> | undefined;

/** One browser for all tests of this process: each visit has a profile of its own. It ends with the process. */
const sharedBrowser = (): Promise<Browser> => (launched ??= launch());

/** Bun kills what a test has started that takes too long. The next one launches another. */
async function launch(): Promise<Browser> {
  const forget = (): void => {
    launched = undefined;
    leftProfiles.clear();
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
    // A file names its own backends.
    ...(environment["MODELS_FILE"] === undefined && { PROXY_UPSTREAM_URL: simulator.url }),
    ...environment,
  });
  const admin = await logIn(program.adminUrl, "admin", password);
  return {
    program,
    simulator,
    admin,
    visit: (path, options = {}) => visitPage(program.adminUrl, options.cookie ?? admin.cookie, path, options),
    async [Symbol.asyncDispose]() {
      // Its data is deleted next, so it need not shut down cleanly.
      await program.stop("SIGKILL");
      simulator.stop();
      folder.remove();
    },
  };
}

interface Profile {
  page: Page;
  context: BrowserContext;
  visits: number;
  visit: { origin: string; alsoAsks: string | undefined; expectedErrors: RegExp | undefined; problems: string[] };
}

/** Its memory grows with each visit. */
const maxVisits = 50;

/**
 * Profiles that visits have left, by what is fixed in one. The next such visit takes one over, of another test file too:
 * a new one costs more CPU time than the page, because it starts a process and compiles the console's code anew.
 */
const leftProfiles = new Map<string, Profile[]>();

async function visitPage(adminUrl: string, cookie: string, path: string, options: VisitOptions): Promise<Page> {
  const { scheme = "light", phone, anonymous = false, origin = adminUrl, timeZone, expectedErrors, alsoAsks } = options;
  const isFresh = options.fresh === true || options.fakeClock === true;
  const kind = JSON.stringify([phone === true, anonymous, origin === adminUrl, timeZone]);
  const left = isFresh ? undefined : leftProfiles.get(kind)?.pop();
  const profile = left ?? (await openProfile(origin === adminUrl, isFresh, options));
  profile.visits += 1;
  profile.visit = { origin, alsoAsks, expectedErrors, problems: [] };
  const { page, context } = profile;
  await context.clearCookies();
  if (!anonymous || options.cookie !== undefined) await addSession(context, adminUrl, cookie);
  await page.setViewportSize(viewportOf(options));
  const media = { media: null, forcedColors: null, contrast: null, reducedMotion: "reduce" } as const;
  await page.emulateMedia({ ...media, colorScheme: scheme });
  await page.goto(origin + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  page[Symbol.asyncDispose] = async () => {
    // What a test answers for the server may be under way while the page closes.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    const { problems } = profile.visit;
    const mayLeave = !isFresh && problems.length === 0 && profile.visits < maxVisits;
    const isLeft = mayLeave && (await leave(profile).catch(() => false));
    if (isLeft) leftProfiles.set(kind, [...(leftProfiles.get(kind) ?? []), profile]);
    else await context.close();
    if (problems.length === 0) return;
    const message = `Problems in the page:\n${problems.join("\n")}`;
    // Bun does not print the second of two errors (1.4.5), and the test may have failed because of these.
    globalThis.console.error(message);
    throw new Error(message);
  };
  return page;
}

/** Leaves the console, and nothing of the visit but what is fixed in the profile. */
async function leave({ page, context, visit }: Profile): Promise<true> {
  await Promise.all(context.pages().map((other) => (other === page ? undefined : other.close())));
  // A text of the same origin, in which no script of ours runs.
  await page.goto(`${visit.origin}/figtree-license.txt`);
  await page.evaluate(() => localStorage.clear());
  await page.mouse.move(-1, -1);
  // A test may have waited for one that did not come.
  page.removeAllListeners("dialog");
  return true;
}

const viewportOf = ({ phone = false }: VisitOptions): { width: number; height: number } =>
  phone ? { width: 390, height: 844 } : { width: 1280, height: 800 };

async function openProfile(isOwnOrigin: boolean, isFresh: boolean, options: VisitOptions): Promise<Profile> {
  const { phone = false, anonymous = false, timeZone } = options;
  const context = await (
    await sharedBrowser()
  ).newContext({
    isMobile: phone,
    hasTouch: phone,
    acceptDownloads: true,
    ...(timeZone === undefined ? {} : { timezoneId: timeZone }),
    permissions: isOwnOrigin ? ["clipboard-read", "clipboard-write"] : [],
  });
  if (!anonymous) await context.addInitScript(() => localStorage.setItem("tollgate.session", "yes"));
  // Shorter than the timeout of a test, after which Bun kills the program that later tests need.
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  if (options.fakeClock === true) await page.clock.install();
  const profile: Profile = {
    page,
    context,
    visits: 0,
    visit: { origin: "", alsoAsks: undefined, expectedErrors: undefined, problems: [] },
  };
  collectProblems(profile);
  if (!isFresh) refuseWhatLasts(page);
  return profile;
}

function refuseWhatLasts(page: Page): void {
  for (const [owner, name] of [
    [page, "addInitScript"],
    [page, "exposeFunction"],
    [page.context(), "newCDPSession"],
  ] as const) {
    Reflect.set(owner, name, () => {
      throw new Error(`The next visit would see this: visit with fresh: true to use ${name}`);
    });
  }
}

/** Takes the session's cookie away. A response to an earlier request would renew it. */
export async function loseSession(page: Page): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page.context().clearCookies();
}

async function addSession(context: BrowserContext, adminUrl: string, cookie: string): Promise<void> {
  const [name = "", ...value] = cookie.split("=");
  const { hostname } = new URL(adminUrl);
  await context.addCookies([
    { name, value: value.join("="), domain: hostname, path: "/", httpOnly: true, secure: true, sameSite: "Lax" },
  ]);
}

function collectProblems(profile: Profile): void {
  const { page } = profile;
  page.on("console", (line) => {
    const { expectedErrors, problems } = profile.visit;
    // A browser with windows asks for it beside the text that a visit leaves.
    if (line.location().url.endsWith("/favicon.ico")) return;
    if (expectedErrors?.test(line.text()) !== true) problems.push(`${line.type()}: ${line.text()}`);
  });
  page.on("pageerror", (error) => profile.visit.problems.push(`thrown: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const { protocol, origin: target } = new URL(request.url());
    const { origin, alsoAsks, problems } = profile.visit;
    if (target !== origin && target !== alsoAsks && protocol !== "data:" && protocol !== "blob:")
      problems.push(`request to ${request.url()}`);
  });
}

/** Not by a click, which scrolls to the button: a list shows more by itself then, and moves the button away from the mouse. */
export const showMore = (list: Page | Locator): Promise<void> =>
  list.getByRole("button", { name: "Show more" }).dispatchEvent("click");

/** The text of the file that the action downloads. */
export async function downloadOf(page: Page, act: () => Promise<unknown>): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), act()]);
  return Bun.file(await download.path()).text();
}

/** As when another tab is chosen, or this one again. */
export const setVisible = (page: Page, visible: boolean): Promise<void> =>
  page.evaluate((isVisible) => {
    const value = isVisible ? "visible" : "hidden";
    Object.defineProperty(document, "visibilityState", { value, configurable: true });
    Object.defineProperty(document, "hidden", { value: !isVisible, configurable: true });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  }, visible);

/** How often a person has pressed since, on the same page. */
export async function countPresses(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    Reflect.set(globalThis, "presses", 0);
    const add = (): void => void Reflect.set(globalThis, "presses", Number(Reflect.get(globalThis, "presses")) + 1);
    addEventListener("pointerdown", add, true);
  });
  return () => page.evaluate(() => Number(Reflect.get(globalThis, "presses")));
}
