/**
 * Runs requests on an old and a new program side by side, and prints a row for each difference in what the client got, what
 * the backend got, and what was counted.
 * `bun tests/soak/side-by-side.ts --old PROGRAM --new PROGRAM [--seed N] [--random N] [--only TEXT]`
 * PROGRAM: a binary, or a folder with the sources. --random: how many random streams, and as many random bodies; by default
 * 400, which takes two minutes. --only: cases whose room or name contains the text. Exits with 1 if something differs.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { createRandom } from "../support/random.ts";
import { tableCases } from "./side-cases.ts";
import { randomCases } from "./side-random.ts";
import { severalCases, severalSettings } from "./side-several.ts";
import { type Case, type Seen, startSide, type World } from "./sides.ts";

const { values: options } = parseArgs({
  options: {
    old: { type: "string" },
    new: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    random: { type: "string", default: "400" },
    only: { type: "string", default: "" },
  },
});

interface Difference {
  room: string;
  name: string;
  what: string;
  old: string;
  new: string;
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const seed = Number(options.seed);

const isChosen = ({ room, name }: Case): boolean => `${room} ${name}`.includes(options.only);

const worlds: readonly World[] = [
  {
    name: "one backend",
    backends: 1,
    settings: ([url = ""]) => ({
      PROXY_UPSTREAM_URL: url,
      PROXY_UPSTREAM_API_KEY: "backend-key",
      PROXY_ALIAS_MODEL: "served",
      PROXY_FAMILY_MODEL: "served",
      PROXY_CORS_ORIGINS: "https://chat.example.com, http://localhost:3000",
      MAX_OUTPUT_TOKENS: "300",
      MAX_BODY_BYTES: "1000000",
    }),
    cases: [...tableCases(), ...randomCases(createRandom(seed), seed, Number(options.random))].filter(isChosen),
  },
  { name: "two backends", backends: 2, settings: severalSettings, cases: severalCases().filter(isChosen) },
];

async function main(oldProgram: string, newProgram: string): Promise<void> {
  print(`Seed ${seed}`);
  for (const world of worlds) {
    const begun = performance.now();
    const found = await compare(world, oldProgram, newProgram);
    // A busy machine changes how the packets of a broken stream meet.
    const again = await compare({ ...world, cases: world.cases.filter(isIn(found)) }, oldProgram, newProgram);
    const confirmed = again.filter(isIn(found));
    const seconds = Math.round((performance.now() - begun) / 1000);
    print(`${world.name}: ${world.cases.length} cases in ${seconds} s, ${confirmed.length} differences`);
    for (const one of confirmed) show(one);
    for (const { room, name, what } of found.filter((one) => !isIn(confirmed)(one))) {
      print(`Differed once, and not again: ${room} | ${JSON.stringify(name.slice(0, 200))} | ${what}`);
    }
    if (confirmed.length > 0) process.exitCode = 1;
  }
}

const isIn =
  (found: readonly Difference[]) =>
  ({ room, name }: Pick<Case, "room" | "name">): boolean =>
    found.some((one) => one.room === room && one.name === name);

/** Case after case, because what is learned of a backend by one of them is used for the next. */
async function compare(world: World, oldProgram: string, newProgram: string): Promise<Difference[]> {
  const { cases } = world;
  if (cases.length === 0) return [];
  await using oldSide = await startSide(oldProgram, world);
  await using newSide = await startSide(newProgram, world);
  for (const index of cases.keys()) await Promise.all([oldSide.run(index), newSide.run(index)]);
  const [before, after] = await Promise.all([oldSide.seen(), newSide.seen()]);
  return before.flatMap((seen, index) => {
    const { room, name } = cases[index] ?? { room: "reports", name: "all cases" };
    return differencesOf(seen, after[index] ?? {}).map((one) => Object.assign(one, { room, name }));
  });
}

function differencesOf(before: Seen, after: Seen): Pick<Difference, "what" | "old" | "new">[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((what) => {
    const [old, now] = [before[what] ?? "(none)", after[what] ?? "(none)"];
    return old === now ? [] : [{ what, old, new: now }];
  });
}

const shownCharacters = 300;

/** From shortly before the first byte that differs. */
function show({ room, name, what, old, new: now }: Difference): void {
  let at = 0;
  while (at < old.length && old[at] === now[at]) at++;
  const from = Math.max(0, at - 60);
  const shown = (text: string): string => JSON.stringify(text.slice(from, at + shownCharacters));
  print(
    `\n${room} | ${JSON.stringify(name.slice(0, 200))} | ${what}, at ${at}\n  old ${shown(old)}\n  new ${shown(now)}`,
  );
}

if (options.old === undefined || options.new === undefined || !Number.isSafeInteger(seed)) {
  process.stderr.write("--old and --new: a binary, or a folder with the sources; --seed: a number\n");
  process.exit(2);
}
await main(resolve(options.old), resolve(options.new));
process.exit();
