import { dirname, join } from "node:path";
import { findCircles, type Graph, reachedFrom } from "../support/circles.ts";
import { repositoryRoot } from "../support/import-table.ts";
import type { Budget, Measured } from "./budgets.ts";
import { listFunctions, type SourceFunction } from "./functions.ts";
import { measureRooms, readGraph, roomInside, roomInWhole, type Rooms } from "./rooms.ts";
import { listFilesToChange, newLimitKind, newUsageCounter, newWindow } from "./scratch-change.ts";

export interface House {
  graph: Graph;
  /** Lines of each file. */
  lines: ReadonlyMap<string, number>;
  functions: readonly SourceFunction[];
  /** Files that name cached input, as an example of a counter. */
  namingCounter: readonly string[];
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
    namingCounter: [...texts].filter(([, text]) => /cachedInput|cached_input/.test(text)).map(([file]) => file),
  };
}

/** Of the whole, or of a folder. @throws Error if there is no such folder */
export function roomsOf({ graph }: House, folder?: string): Rooms {
  const measured = measureRooms(graph, folder === undefined ? roomInWhole : (file) => roomInside(folder, file));
  if (measured.rooms === 0) throw new Error(`${folder} is not a folder of the program`);
  return measured;
}

function filesInReach(graph: Graph, file = ""): number {
  if (!graph.has(file)) throw new Error(`${file} is not a file of the program`);
  return reachedFrom(graph, file).size;
}

/** Every folder of the program that holds files. */
export const foldersOf = ({ lines }: House): string[] =>
  [...new Set([...lines.keys()].map((file) => dirname(file)))].filter((name) => name !== "src").toSorted();

const maxFunctionLines = 80;

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
  const { graph, functions, namingCounter } = house;
  let counted: Promise<Calls> | undefined;
  const calls = (): Promise<Calls> => (counted ??= countCalls());
  const measures: Record<string, (path?: string) => number | readonly string[] | Promise<number | readonly string[]>> =
    {
      "rooms in the whole": () => roomsOf(house).rooms,
      "arrows in the whole": () => roomsOf(house).arrows,
      "rooms in": (path) => roomsOf(house, path).rooms,
      "arrows in": (path) => roomsOf(house, path).arrows,
      "arrows that run up": () =>
        [undefined, ...foldersOf(house)].reduce((sum, path) => sum + roomsOf(house, path).up.length, 0),
      "circles of files": () => findCircles(graph).length,
      "files in reach of": (path) => filesInReach(graph, path),
      "files that run for a request, key without limits": async () => countFiles((await calls()).withoutLimits),
      "functions that run for a request, key without limits": async () => (await calls()).withoutLimits.length,
      "files that run for a request, key with limits": async () => countFiles((await calls()).withLimits),
      "functions that run for a request, key with limits": async () => (await calls()).withLimits.length,
      "files that name one usage counter": () => namingCounter.length,
      "files that the type check names for a new usage counter": () => listFilesToChange([newUsageCounter]),
      "files that the type check names for a new limit kind": () => listFilesToChange([newLimitKind, newWindow]),
      "files in the largest folder of the console": () => largestConsoleFolder(house),
      "lines of the longest function": () => longestFunctions(house)[0]?.lines ?? 0,
      [`functions over ${maxFunctionLines} lines`]: () =>
        functions.filter(({ lines }) => lines > maxFunctionLines).length,
      "lines of the longest file": () => longestFiles(house)[0]?.[1] ?? 0,
    };
  const measured: Measured[] = [];
  for (const budget of budgets) {
    const [, name = "", path] = /^(.+?)(?: `(.+)`)?$/.exec(budget.name) ?? [];
    const measure = measures[name];
    if (measure === undefined) throw new Error(`CONTRIBUTING.md, budgets: ${name} is not measured`);
    const result = await measure(path);
    measured.push({
      ...budget,
      ...(typeof result === "number" ? { value: result } : { value: result.length, names: result }),
    });
  }
  return measured;
}
