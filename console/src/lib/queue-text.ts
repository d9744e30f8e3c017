import { count } from "./format.ts";

interface Queue {
  places: number | null;
  used: number;
  waiting: number;
}

/** `8 of 8 places, 12 waiting`; undefined if nothing is limited and nothing waits. */
export function queueText(queue: Queue | undefined): string | undefined {
  if (queue === undefined) return undefined;
  const { places, used, waiting } = queue;
  const parts = [
    ...(places === null ? [] : [`${count(used)} of ${count(places)} places`]),
    ...(places === null && waiting === 0 ? [] : [`${count(waiting)} waiting`]),
  ];
  return parts.length === 0 ? undefined : parts.join(", ");
}
