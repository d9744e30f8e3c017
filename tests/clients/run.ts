/**
 * Runs the real clients with Help's settings against the simulated model and each refusal, and compares what they do with
 * meetings.json; `--write` writes that, and .github/CLIENTS.md:
 * `tests/clients/setup`, then `bun tests/clients/run.ts [--write] [--client codex] [--scenario 429]`
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../support/import-table.ts";
import { type RealClient, realClients } from "./client.ts";
import { findWhyNoClients, installClient, type InstalledClient, type Run } from "./installed-client.ts";
import { answer, model, openWorld, type Scenario, scenarios, type World } from "./scenarios.ts";
import { findProblems, type Meeting, mergeMeetings, writePage } from "./page.ts";

const { values } = parseArgs({
  options: {
    write: { type: "boolean" },
    /** Prints all that the clients show. */
    screen: { type: "boolean" },
    client: { type: "string" },
    scenario: { type: "string" },
    /** They wait more than they compute. */
    "at-once": { type: "string", default: "4" },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const dataFile = join(import.meta.dir, "meetings.json");

async function meet(client: RealClient, scenario: Scenario): Promise<Meeting> {
  await using world = await openWorld(scenario);
  await scenario.prepare?.(world, client);
  const key = scenario.wrongKey === true ? "not-a-key" : world.key;
  using installed = await installClient(client, { origin: world.gate.url, key, model });
  const meanwhile = scenario.meanwhile?.(world, client);
  const { status, seconds, screen } = await (scenario.typed === undefined ? askAll : typeAll)(
    client,
    scenario,
    installed,
  );
  await meanwhile;
  if (values.screen === true) say(screen);
  const isTyped = scenario.typed !== undefined;
  // On a screen, what was typed last counts.
  const isAnswered = screen.slice(isTyped ? screen.lastIndexOf("> ") : 0).includes(answer);
  return {
    client: client.label,
    scenario: scenario.name,
    ends: isAnswered ? "answered" : isTyped ? "refused" : `exit ${status ?? "none"}`,
    calls: await countCalls(world),
    seconds: Math.round(seconds * 10) / 10,
    screen: isTyped ? withoutChance(screen) : isAnswered ? "" : sentenceIn(screen),
    elsewhere: installed.elsewhere(),
  };
}

/** @returns the last run */
async function askAll(
  client: RealClient,
  { furtherQuestions = [] }: Scenario,
  installed: InstalledClient,
): Promise<Run> {
  let run = await installed.run(client.ask("Say hello in three words"));
  for (const question of furtherQuestions) run = await installed.run((client.goOn ?? client.ask)(question));
  return run;
}

const quietMs = 4000;

/** Its screen is, of each line, its beginning and what came of it. */
async function typeAll(client: RealClient, scenario: Scenario, installed: InstalledClient): Promise<Run> {
  const { typed = [], furtherQuestions } = scenario;
  const { goOn = [], ready = "" } = client.screen ?? {};
  if (furtherQuestions !== undefined) await askAll(client, scenario, installed);
  const begun = performance.now();
  using terminal = installed.open(furtherQuestions === undefined ? [] : goOn);
  let known = saidOn(await terminal.settle(quietMs, ready)).length;
  const shown: string[] = [];
  for (const line of typed) {
    await terminal.type(line);
    const screen = await terminal.settle(quietMs);
    if (values.screen === true) say(screen);
    const said = saidOn(screen);
    shown.push(`> ${line}`, ...said.slice(known));
    known = said.length;
  }
  return { status: null, seconds: (performance.now() - begun) / 1000, screen: shown.join("\n") };
}

/** Answers, errors and warnings. */
const saidOn = (screen: string): string[] =>
  screen.split("\n").flatMap((line) => /^\s*([•■⚠] (?!\d+ warning).*)/.exec(line)?.[1] ?? []);

/** The database has a request soon after its client has its response. */
async function countCalls({ gate }: World): Promise<number> {
  const count = async (): Promise<number> => {
    const requests = await gate.admin.listRequests("?limit=200");
    // Ours are Bun's. Lists of models are none.
    return requests.filter(({ client, path }) => client?.startsWith("Bun") !== true && path !== "/v1/models").length;
  };
  for (let before = -1; ;) {
    const now = await count();
    if (now === before) return now;
    before = now;
    await Bun.sleep(2000);
  }
}

/** Notices that a client prints in any case. */
const notices = /^(?:warning:|WARNING:|\[claude-code:|Reading additional input|> build)/;

/** What Tollgate said. */
const ours = /An administrator ended|This request may use|Invalid API key/;

/** The line that has our sentence, or names an error, or the last one, without what differs between two runs. */
function sentenceIn(screen: string): string {
  const lines = screen
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !notices.test(line));
  const marks = [ours, /error: /i, /error/i, /^/];
  const line = marks.map((mark) => lines.findLast((one) => mark.test(one))).find((one) => one !== undefined) ?? "";
  return withoutChance(line).slice(0, 300);
}

const withoutChance = (text: string): string =>
  text
    .replaceAll(/https?:\/\/127\.0\.0\.1:\d+/g, "ORIGIN")
    .replaceAll(/\b[\da-f]{8}-[\da-f-]{27}\b/g, "ID")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, "TIME");

const meets = (client: RealClient, { furtherQuestions, typed, only, alsoFor = [] }: Scenario): boolean =>
  (only === undefined || only === client.id) &&
  (client.goOn !== undefined || furtherQuestions === undefined) &&
  (client.screen !== undefined || typed === undefined) &&
  (client.kind === undefined || only === client.id || alsoFor.includes(client.kind));

async function meetAll(): Promise<Meeting[]> {
  const wanted = realClients
    .filter(({ id }) => values.client === undefined || id === values.client)
    .flatMap((client) => scenarios.map((scenario) => ({ client, scenario })))
    .filter(({ client, scenario }) => meets(client, scenario))
    .filter(({ scenario }) => scenario.name.includes(values.scenario ?? ""));
  const met = new Map<(typeof wanted)[number], Meeting>();
  const waiting = wanted.values();
  const work = async (): Promise<void> => {
    for (const one of waiting) {
      const meeting = await meet(one.client, one.scenario).catch((error: unknown) => {
        throw new Error(`${one.client.label}, ${one.scenario.name}`, { cause: error });
      });
      met.set(one, meeting);
      if (values.write === true) write([meeting]);
      const { ends, calls, seconds, screen } = meeting;
      say(`${meeting.client}, ${meeting.scenario}: ${ends}, ${calls} calls, ${seconds.toFixed(1)} s ${screen}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values["at-once"]) }, work));
  return wanted.flatMap((one) => met.get(one) ?? []);
}

const readKnown = (): Meeting[] => JSON.parse(readFileSync(dataFile, "utf8")) as Meeting[];

/** At once, so that no other run is lost. */
function write(met: readonly Meeting[]): void {
  const merged = mergeMeetings(readKnown(), met);
  writeFileSync(dataFile, `${JSON.stringify(merged, null, 2)}\n`);
  writeFileSync(join(repositoryRoot, ".github/CLIENTS.md"), writePage(merged));
}

const whyNot = findWhyNoClients();
if (whyNot !== undefined) throw new Error(whyNot);
const known = readKnown();
const meetings = await meetAll();
const problems = [
  ...(values.write === true ? [] : findProblems(meetings, known)),
  ...meetings
    .filter(({ scenario, ends }) => {
      const wanted = scenarios.find(({ name }) => name === scenario)?.ends;
      return wanted !== undefined && (wanted === "answered") !== (ends === "answered");
    })
    .map(({ client, scenario, ends }) => `${client}, ${scenario}: ${ends}`),
];
for (const problem of problems) say(problem);
say(`${meetings.length} runs, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
