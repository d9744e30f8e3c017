import { realClients, versionOf } from "./client.ts";
import { scenarios } from "./scenarios.ts";

/** What became of a client that met a scenario. */
export interface Meeting {
  client: string;
  scenario: string;
  /** `answered`, or the status that it exited with. */
  ends: string;
  /** Requests that it sent. */
  calls: number;
  seconds: number;
  /** What it shows instead of an answer. */
  screen: string;
  /** Hosts that it wanted to connect to beside Tollgate. */
  elsewhere: readonly string[];
}

const head = `# Clients against each refusal

What users of coding agents and other clients see when Tollgate refuses a request, makes it wait or loses it. Each row is one
run of the real program with the settings that Help writes for it (Kimi Code, Mistral Vibe and gptme: with what their
documentation makes of the address, the key and the model), against the simulated model, on a busy machine with two cores; a
question is one request. \`bun tests/clients/run.ts --write\` writes this page, and CI compares it each night
(\`tests/clients/setup\` installs the programs). Seconds include the program's own start. Where somebody types on a program's
screen, the row has what was typed, behind \`>\`, and what stood there then.

Open WebUI asks for a title, tags and further questions beside the answer; those are calls too.

Not here: Crush, whose package fetches the program from GitHub as it is installed, and goose, which is there alone; VS Code,
Cursor and other programs that have nothing but windows.
`;

/** What was known before, with the new in place of the old, in the order of clients and scenarios. */
export function mergeMeetings(known: readonly Meeting[], met: readonly Meeting[]): Meeting[] {
  const all = [...met, ...known];
  return realClients.flatMap(({ label }) =>
    scenarios.flatMap(({ name }) => all.find(({ client, scenario }) => client === label && scenario === name) ?? []),
  );
}

/** Backticks and bars would end a cell. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("`", "'");

export function writePage(meetings: readonly Meeting[]): string {
  const parts = realClients.flatMap((client) => {
    const { label } = client;
    const own = meetings.filter((meeting) => meeting.client === label);
    if (own.length === 0) return [];
    const hosts = [...new Set(own.flatMap(({ elsewhere }) => elsewhere))].toSorted();
    const rows = own.map(({ scenario, ends, calls, seconds, screen }) =>
      row([scenario, ends, String(calls), seconds.toFixed(seconds < 10 ? 1 : 0), screen === "" ? "" : code(screen)]),
    );
    return [
      `## ${label} ${versionOf(client)}`,
      [row(["meets", "ends", "calls", "seconds", "on the screen"]), row(Array(5).fill("---")), ...rows].join("\n"),
      hosts.length === 0 ? "It connects to nothing but Tollgate." : `It also connects to ${hosts.join(", ")}.`,
    ];
  });
  return `${[head.trim(), ...parts].join("\n\n")}\n`;
}

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
/** Each line of it. */
const code = (text: string): string =>
  text
    .split("\n")
    .map((line) => `\`${cell(line)}\``)
    .join("<br>");

/** How often a client tries again depends on chance: it waits for random times. */
const isLikeCalls = (now: number, before: number): boolean => Math.abs(now - before) <= Math.max(1, before / 3);

/** A row that the page has not yet is none. */
export function findProblems(meetings: readonly Meeting[], known: readonly Meeting[]): string[] {
  return meetings.flatMap((met) => {
    const name = `${met.client}, ${met.scenario}`;
    const before = known.find(({ client, scenario }) => client === met.client && scenario === met.scenario);
    if (before === undefined) return [];
    return [
      ...(met.ends === before.ends ? [] : [`${name}: ends ${met.ends}, before ${before.ends}`]),
      ...(isLikeCalls(met.calls, before.calls) ? [] : [`${name}: ${met.calls} calls, before ${before.calls}`]),
      ...(wordsOf(met.screen) === wordsOf(before.screen) ? [] : [`${name}: shows ${met.screen}`]),
    ];
  });
}

/** Without numbers, such as seconds to wait, and the spelling of backticks. */
const wordsOf = (text: string): string => text.replaceAll(/[\d`'|\\]+/g, "").trim();
