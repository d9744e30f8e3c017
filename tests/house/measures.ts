import { dirname, join } from "node:path";
import { findCircles, type Graph } from "../support/circles.ts";
import { repositoryRoot } from "../support/import-table.ts";
import type { Budget, Measured } from "./budgets.ts";
import { listFunctions, type SourceFunction } from "./functions.ts";
import { measureRooms, readGraph, roomInside, roomInWhole, type Rooms } from "./rooms.ts";
import { listFilesToChange, newLimitKind, newRequestField, newUsageCounter, newWindow } from "./scratch-change.ts";

export interface House {
  graph: Graph;
  /** Lines of each file. */
  lines: ReadonlyMap<string, number>;
  functions: readonly SourceFunction[];
  /** The files whose text has a match. */
  listNaming: (names: RegExp) => readonly string[];
  /** How many interfaces and type aliases `src` declares. */
  types: number;
  /** What files export to other rooms, as `FILE:NAME`; a room is a folder here. */
  crossing: ReadonlySet<string>;
}

/** What `count-calls.ts` prints, as `FILE:LINE:NAME`. */
interface Calls {
  withoutLimits: readonly string[];
  withLimits: readonly string[];
}

export async function readHouse(): Promise<House> {
  const files = ["src", "console/src"]
    .flatMap((root) =>
      [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(repositoryRoot, root))].map((name) => `${root}/${name}`),
    )
    .filter((name) => !name.endsWith(".d.ts"))
    .toSorted();
  const texts = new Map<string, string>();
  for (const file of files) texts.set(file, await Bun.file(join(repositoryRoot, file)).text());
  return {
    graph: await readGraph(repositoryRoot, files),
    lines: new Map([...texts].map(([file, text]) => [file, text.split("\n").length - 1])),
    functions: [...texts].flatMap(([file, text]) => listFunctions(file, text)),
    types: sum([...texts].map(([file, text]) => (isOfProgram(file) ? (text.match(typePattern) ?? []).length : 0))),
    crossing: namesThatCross(texts),
    listNaming: (names) => [...texts].filter(([, text]) => names.test(text)).map(([file]) => file),
  };
}

const isOfProgram = (file: string): boolean => file.startsWith("src/");
const typePattern = /^ *(?:export )?(?:interface \w+|type \w+(?:<.*?>)? =)/gm;

const importPattern = /^(?:import|export) (?:type )?\{([^}]*)\} from "(\.[^"]*)"/gm;
/** Each name in the braces of an import, without `type` before it and `as …` behind. */
const importedName = /(?<=^|,)\s*(?:type )?(\w+)/g;

function namesThatCross(texts: ReadonlyMap<string, string>): Set<string> {
  const crossing = new Set<string>();
  for (const [file, text] of texts) {
    if (!isOfProgram(file)) continue;
    for (const [, names = "", path = ""] of text.matchAll(importPattern)) {
      const target = join(dirname(file), path);
      if (dirname(target) === dirname(file)) continue;
      for (const [, name] of names.matchAll(importedName)) crossing.add(`${target}:${name}`);
    }
  }
  return crossing;
}

/** Of the whole, or of a folder. @throws Error if there is no such folder */
export function roomsOf({ graph }: House, folder?: string): Rooms {
  const measured = measureRooms(graph, folder === undefined ? roomInWhole : (file) => roomInside(folder, file));
  if (measured.rooms === 0) throw new Error(`${folder} is not a folder of the program`);
  return measured;
}

/** Every folder of the program that holds files. */
export const foldersOf = ({ lines }: House): string[] =>
  [...new Set([...lines.keys()].map((file) => dirname(file)))].filter((name) => name !== "src").toSorted();

const maxFunctionLines = 100;

/** Nine of ten are not longer. */
const ninthTenth = (lengths: readonly number[]): number =>
  lengths.toSorted((one, other) => one - other)[Math.floor(lengths.length * 0.9)] ?? 0;

const linesOfProgram = ({ lines }: House): number[] =>
  [...lines].filter(([file]) => isOfProgram(file)).map(([, length]) => length);

const sum = (numbers: readonly number[]): number => numbers.reduce((left, right) => left + right, 0);

/** Of the bodies of functions; an inner one counts twice, as it is read twice. @param calls as `FILE:LINE:NAME` */
function linesOfCalls({ functions }: House, calls: readonly string[]): number {
  const called = new Set(calls);
  return sum(
    functions.filter(({ file, line, name }) => called.has(`${file}:${line}:${name}`)).map(({ lines }) => lines),
  );
}

export const longestFunctions = ({ functions }: House): House["functions"] =>
  functions.toSorted((one, other) => other.lines - one.lines);

export const longestFiles = ({ lines }: House): [file: string, lines: number][] =>
  [...lines].toSorted(([, one], [, other]) => other - one);

const largestConsoleFolder = ({ lines }: House): number => {
  const files = [...lines.keys()].filter((file) => file.startsWith("console/"));
  return Math.max(
    ...Map.groupBy(files, dirname)
      .values()
      .map(({ length }) => length),
  );
};

/** In a program of its own: its plugin must not reach the modules of this process. */
async function countCalls(): Promise<Calls> {
  const program = Bun.spawn([process.execPath, join(import.meta.dir, "count-calls.ts")], { stdout: "pipe" });
  return JSON.parse(await new Response(program.stdout).text()) as Calls;
}

const countFiles = (calls: readonly string[]): number => new Set(calls.map((call) => call.split(":", 1)[0])).size;

/**
 * The value beside each budget.
 * @throws Error for a budget of something that is not measured
 */
export async function measureHouse(house: House, budgets: readonly Budget[]): Promise<Measured[]> {
  const { graph, functions, listNaming } = house;
  let counted: Promise<Calls> | undefined;
  const calls = (): Promise<Calls> => (counted ??= countCalls());
  const measures: Record<string, () => number | readonly string[] | Promise<number | readonly string[]>> = {
    "rooms in the whole": () => roomsOf(house).rooms,
    "arrows in the whole": () => roomsOf(house).arrows,
    "arrows that run up": () =>
      [undefined, ...foldersOf(house)].reduce((arrows, path) => arrows + roomsOf(house, path).up.length, 0),
    "circles of files": () => findCircles(graph).length,
    "files that run for a request, key without limits": async () => countFiles((await calls()).withoutLimits),
    "functions that run for a request, key without limits": async () => (await calls()).withoutLimits.length,
    "lines of functions that run for a request, key without limits": async () =>
      linesOfCalls(house, (await calls()).withoutLimits),
    "files that run for a request, key with limits": async () => countFiles((await calls()).withLimits),
    "functions that run for a request, key with limits": async () => (await calls()).withLimits.length,
    "lines of functions that run for a request, key with limits": async () =>
      linesOfCalls(house, (await calls()).withLimits),
    "files that name one usage counter": () => listNaming(/cachedInput|cached_input/).length,
    "files that the type check names for a new usage counter": () => listFilesToChange([newUsageCounter]),
    "files that a field of the request log touches": async () => [
      ...new Set([...(await listFilesToChange([newRequestField])), ...listNaming(/maxTokensFrom|max_tokens_from/)]),
    ],
    "files that the type check names for a new limit kind": () => listFilesToChange([newLimitKind, newWindow]),
    "files in the largest folder of the console": () => largestConsoleFolder(house),
    "lines of the program": () => sum(linesOfProgram(house)),
    "files of the program": () => linesOfProgram(house).length,
    "types per 1,000 lines": () => Math.round((house.types / sum(linesOfProgram(house))) * 1000),
    "names that one folder imports from another": () => house.crossing.size,
    "lines of a file, nine of ten": () => ninthTenth(linesOfProgram(house)),
    "lines of a function, nine of ten": () =>
      ninthTenth(functions.filter(({ file }) => isOfProgram(file)).map(({ lines }) => lines)),
    [`functions over ${maxFunctionLines} lines`]: () =>
      functions.filter(({ lines }) => lines > maxFunctionLines).length,
  };
  const measured: Measured[] = [];
  for (const budget of budgets) {
    const measure = measures[budget.name];
    if (measure === undefined) throw new Error(`CONTRIBUTING.md, budgets: ${budget.name} is not measured`);
    const result = await measure();
    measured.push({
      ...budget,
      ...(typeof result === "number" ? { value: result } : { value: result.length, names: result }),
    });
  }
  return measured;
}
