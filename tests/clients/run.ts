/**
 * Runs the real clients with Help's settings against the simulated model and each refusal, and compares what they do with
 * meetings.json; `--write` writes that, and .github/CLIENTS.md:
 * `tests/clients/setup`, then `bun tests/clients/run.ts [--write] [--client codex] [--scenario 429]`
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../support/import-table.ts";
import { findWhyNoClients, installClient, type RealClient, realClients } from "./client.ts";
import { answer, model, openWorld, type Scenario, scenarios, type World } from "./scenarios.ts";
import { findProblems, type Meeting, mergeMeetings, writePage } from "./page.ts";

const { values } = parseArgs({
  options: {
    write: { type: "boolean" },
    /** Prints all that the clients show. */
    screen: { type: "boolean" },
    client: { type: "string" },
    scenario: { type: "string" },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const dataFile = join(import.meta.dir, "meetings.json");
/** They wait more than they compute. */
const atOnce = 4;

async function meet(client: RealClient, scenario: Scenario): Promise<Meeting> {
  await using world = await openWorld(scenario);
  await scenario.prepare?.(world, client);
  const key = scenario.wrongKey === true ? "not-a-key" : world.key;
  using installed = await installClient(client, { origin: world.gate.url, key, model });
  let running = installed.run(client.ask("Say hello in three words"));
  for (const question of scenario.furtherQuestions ?? []) {
    await running;
    running = installed.run((client.goOn ?? client.ask)(question));
  }
  const meanwhile = scenario.meanwhile?.(world, client);
  const { status, seconds, screen } = await running;
  await meanwhile;
  if (values.screen === true) say(screen);
  const isAnswered = screen.includes(answer);
  return {
    client: client.label,
    scenario: scenario.name,
    ends: isAnswered ? "answered" : `exit ${status ?? "none"}`,
    calls: await countCalls(client, world),
    seconds: Math.round(seconds * 10) / 10,
    screen: isAnswered ? "" : sentenceIn(screen),
    elsewhere: installed.elsewhere(),
  };
}

/** The database has a request soon after its client has its response. */
async function countCalls({ program }: RealClient, { gate }: World): Promise<number> {
  const client = program.slice(0, -1);
  const count = async (): Promise<number> => {
    const query = new URLSearchParams({ client, limit: "200" }).toString();
    const { requests } = await gate.admin.expectOk<{ requests: unknown[] }>("GET", `/api/requests?${query}`);
    return requests.length;
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

/** The line that names the error, or the last one, without what differs between two runs. */
function sentenceIn(screen: string): string {
  const lines = screen
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !notices.test(line));
  const line = lines.findLast((one) => /error/i.test(one)) ?? lines.at(-1) ?? "";
  return line
    .replaceAll(/https?:\/\/127\.0\.0\.1:\d+/g, "ORIGIN")
    .replaceAll(/\b[\da-f]{8}-[\da-f-]{27}\b/g, "ID")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, "TIME")
    .slice(0, 300);
}

async function meetAll(): Promise<Meeting[]> {
  const wanted = realClients
    .filter(({ id }) => values.client === undefined || id === values.client)
    .flatMap((client) => scenarios.map((scenario) => ({ client, scenario })))
    .filter(({ client, scenario }) => client.goOn !== undefined || scenario.furtherQuestions === undefined)
    .filter(({ scenario }) => scenario.name.includes(values.scenario ?? ""));
  const met = new Map<(typeof wanted)[number], Meeting>();
  const waiting = wanted.values();
  const work = async (): Promise<void> => {
    for (const one of waiting) {
      const meeting = await meet(one.client, one.scenario).catch((error: unknown) => {
        throw new Error(`${one.client.label}, ${one.scenario.name}`, { cause: error });
      });
      met.set(one, meeting);
      if (values.write === true) await write([meeting]);
      const { ends, calls, seconds, screen } = meeting;
      say(`${meeting.client}, ${meeting.scenario}: ${ends}, ${calls} calls, ${seconds.toFixed(1)} s ${screen}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return wanted.flatMap((one) => met.get(one) ?? []);
}

const readKnown = async (): Promise<Meeting[]> => (await Bun.file(dataFile).json()) as Meeting[];

async function write(met: readonly Meeting[]): Promise<void> {
  const merged = mergeMeetings(await readKnown(), met);
  await Bun.write(dataFile, `${JSON.stringify(merged, null, 2)}\n`);
  await Bun.write(join(repositoryRoot, ".github/CLIENTS.md"), writePage(merged));
}

const whyNot = findWhyNoClients();
if (whyNot !== undefined) throw new Error(whyNot);
const known = await readKnown();
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
