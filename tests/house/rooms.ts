import { dirname, join, normalize } from "node:path";
import { findCircles, type Graph } from "../support/circles.ts";
import { listImports } from "../support/module-imports.ts";

export interface Rooms {
  rooms: number;
  /** One for two rooms of which one imports the other, however many imports that are. */
  arrows: number;
  /** As `from -> to`: without these, each room would stand above all that it imports. */
  up: readonly string[];
}

/** The entry of src's root that a file is or is in; the console, which the server does not import, is one more room. */
export const roomInWhole = (file: string): string | undefined =>
  file.startsWith("console/") ? "console" : roomInside("src", file);

/** The file of the folder itself, or its sub-folder, that a file is or is in; undefined outside the folder. */
export function roomInside(folder: string, file: string): string | undefined {
  return file.startsWith(`${folder}/`) ? file.slice(folder.length + 1).split("/", 1)[0] : undefined;
}

/**
 * Each file with those that it imports; types count.
 * @param root the folder of the repository
 * @param files paths from there
 */
export async function readGraph(root: string, files: readonly string[]): Promise<Graph> {
  const known = new Set(files);
  const entries = files.map(async (file) => {
    const imports = listImports(file, await Bun.file(join(root, file)).text())
      .filter(({ specifier }) => specifier.startsWith("."))
      .map(({ specifier }) => normalize(join(dirname(file), specifier)));
    return [file, new Set(imports.filter((path) => known.has(path)))] as const;
  });
  return new Map(await Promise.all(entries));
}

export function measureRooms(graph: Graph, roomOf: (file: string) => string | undefined): Rooms {
  const between = new Map<string, Set<string>>();
  for (const [file, imports] of graph) {
    const room = roomOf(file);
    if (room === undefined) continue;
    const arrows = between.get(room) ?? new Set();
    between.set(room, arrows);
    for (const path of imports) {
      const other = roomOf(path);
      if (other !== undefined && other !== room) arrows.add(other);
    }
  }
  const arrows = [...between.values()].reduce((sum, { size }) => sum + size, 0);
  return { rooms: between.size, arrows, up: findCircles(between).flatMap((circle) => arrowsUp(between, circle)) };
}

/** Of a circle's arrows, those against an order of its rooms from the one that imports most to the most imported one. */
function arrowsUp(graph: Graph, circle: readonly string[]): string[] {
  const left = new Set(circle);
  const order: string[] = [];
  const isArrow = (from: string, to: string): boolean => graph.get(from)?.has(to) === true;
  const surplus = (room: string): number =>
    [...left].reduce((sum, other) => sum + Number(isArrow(room, other)) - Number(isArrow(other, room)), 0);
  while (left.size > 0) {
    const [top = ""] = [...left].toSorted((one, other) => surplus(other) - surplus(one) || one.localeCompare(other));
    order.push(top);
    left.delete(top);
  }
  return order.flatMap((from, place) =>
    order
      .slice(0, place)
      .filter((to) => isArrow(from, to))
      .map((to) => `${from} -> ${to}`),
  );
}
