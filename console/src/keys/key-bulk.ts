import { useQueryClient } from "@tanstack/solid-query";
import { createSignal } from "solid-js";
import { api, ApiError, causeOf, forEachInTurn, responseBody } from "../client.ts";
import { refresh } from "./key-mutations.ts";

/** A key, or a user of one. */
export interface BulkRow {
  id: number;
  name: string;
  tags: readonly string[];
}
export type Noun = "key" | "user";

export type BulkAction =
  | { kind: "switch"; isActive: boolean; endRunning: boolean }
  | { kind: "delete"; endRunning: boolean }
  | { kind: "paths"; paths: string[] | null }
  | { kind: "team"; teamOf: (tags: readonly string[]) => Promise<number | null> }
  | { kind: "tag"; tags: readonly string[]; adds: boolean };

export interface BulkReport {
  done: number;
  failures: readonly { row: BulkRow; name: string; cause: string }[];
}

async function change(noun: Noun, { id, tags }: BulkRow, action: BulkAction, changeId: string): Promise<unknown> {
  const options = { headers: { "x-change-id": changeId } };
  const [key, user] = [api.keys({ id }), api.users({ id })];
  if (action.kind === "delete") {
    const query = action.endRunning ? ({ end_running: "true" } as const) : {};
    if (noun === "key") return responseBody(key.delete(undefined, { query, ...options }));
    return responseBody(user.delete(undefined, { query: {}, ...options }));
  }
  const body = await bodyOf(action, tags);
  if (noun === "user") return responseBody(user.patch(body, options));
  const ends = action.kind === "switch" && !action.isActive && action.endRunning;
  const paths = action.kind === "paths" ? { allowed_paths: action.paths } : {};
  return responseBody(key.patch({ ...body, ...paths, ...(ends && { end_running: true }) }, options));
}

async function bodyOf(action: BulkAction, tags: readonly string[]) {
  if (action.kind === "switch") return { is_active: action.isActive };
  if (action.kind === "team") return { team_id: await action.teamOf(tags) };
  return action.kind === "tag" ? { tags: tagsAfter(tags, action) } : {};
}

function tagsAfter(before: readonly string[], { tags, adds }: { tags: readonly string[]; adds: boolean }): string[] {
  return adds ? [...new Set([...before, ...tags])] : before.filter((tag) => !tags.includes(tag));
}

/**
 * Finds the one team that has one of some names.
 * @param creates whether one that is not there is made, where only one name is given
 */
export function teamFinder(creates: boolean): (names: readonly string[]) => Promise<number> {
  const load = async () => new Map((await responseBody(api.teams.get())).teams.map(({ name, id }) => [name, id]));
  let teams: ReturnType<typeof load> | undefined;
  return async (names) => {
    teams ??= load();
    const known = await teams;
    const found = names.filter((name) => known.has(name));
    const [name] = found.length === 0 ? names : found;
    if (name === undefined) throw new ApiError(400, "No tag begins so");
    if (found.length > 1) throw new ApiError(400, `Several teams fit: ${found.join(", ")}`);
    const id = known.get(name);
    if (id !== undefined) return id;
    if (!creates || names.length > 1) throw new ApiError(400, `No team is called ${names.join(" or ")}`);
    const made = await responseBody(api.teams.post({ name }));
    known.set(name, made.id);
    return made.id;
  };
}

/** Changes many keys or users, and the table once at the end. */
export function useBulkRun(noun: Noun) {
  const queries = useQueryClient();
  /** How many rows are done, also those that failed. */
  const [progress, setProgress] = createSignal<number>();
  return {
    progress,
    async run(rows: readonly BulkRow[], action: BulkAction): Promise<BulkReport> {
      // The record of changes shows them as one. Over plain HTTP there is no `crypto.randomUUID`.
      const changeId = Array.from(crypto.getRandomValues(new Uint32Array(4)), String).join("-");
      const failures: BulkReport["failures"][number][] = [];
      setProgress(0);
      await queries.cancelQueries({ queryKey: [`${noun}s`] });
      await forEachInTurn(
        rows,
        (row) => change(noun, row, action, changeId),
        (row, error) => {
          if (error !== undefined) failures.push({ row, name: row.name, cause: causeOf(error) });
          setProgress((done = 0) => done + 1);
        },
      );
      await (action.kind === "delete" ? queries.invalidateQueries() : refresh(queries, noun));
      setProgress(undefined);
      return { done: rows.length - failures.length, failures };
    },
  };
}
