import { useQueryClient } from "@tanstack/solid-query";
import { createSignal } from "solid-js";
import { api, causeOf, forEachInTurn, responseBody } from "../client.ts";
import type { Key } from "../queries.ts";

export type BulkAction =
  | { kind: "switch"; isActive: boolean; endRunning: boolean }
  | { kind: "delete"; endRunning: boolean }
  | { kind: "paths"; paths: string[] | null }
  | { kind: "tag"; tags: readonly string[]; adds: boolean };

export interface BulkReport {
  done: number;
  failures: readonly { key: Key; name: string; cause: string }[];
}

function change(key: Key, action: BulkAction, changeId: string): Promise<unknown> {
  const headers = { "x-change-id": changeId };
  const route = api.keys({ id: key.id });
  if (action.kind === "delete") {
    return responseBody(route.delete(undefined, { query: action.endRunning ? { end_running: "true" } : {}, headers }));
  }
  if (action.kind === "paths") return responseBody(route.patch({ allowed_paths: action.paths }, { headers }));
  if (action.kind === "tag") return responseBody(route.patch({ tags: tagsAfter(key.tags, action) }, { headers }));
  const ends = !action.isActive && action.endRunning;
  return responseBody(route.patch({ is_active: action.isActive, ...(ends ? { end_running: true } : {}) }, { headers }));
}

function tagsAfter(before: readonly string[], { tags, adds }: { tags: readonly string[]; adds: boolean }): string[] {
  return adds ? [...new Set([...before, ...tags])] : before.filter((tag) => !tags.includes(tag));
}

interface BulkRun {
  /** How many keys are done, also those that failed. */
  progress: () => number | undefined;
  run: (keys: readonly Key[], action: BulkAction) => Promise<BulkReport>;
}

/** Changes many keys, and the table once at the end. */
export function useBulkRun(): BulkRun {
  const queries = useQueryClient();
  const [progress, setProgress] = createSignal<number>();
  return {
    progress,
    async run(keys, action) {
      // The record of changes shows them as one. Over plain HTTP there is no `crypto.randomUUID`.
      const changeId = Array.from(crypto.getRandomValues(new Uint32Array(4)), String).join("-");
      const failures: BulkReport["failures"][number][] = [];
      setProgress(0);
      await queries.cancelQueries({ queryKey: ["keys"] });
      await forEachInTurn(
        keys,
        (key) => change(key, action, changeId),
        (key, error) => {
          if (error !== undefined) failures.push({ key, name: key.name, cause: causeOf(error) });
          setProgress((done = 0) => done + 1);
        },
      );
      await queries.invalidateQueries(action.kind === "delete" ? {} : { queryKey: ["keys"] });
      setProgress(undefined);
      return { done: keys.length - failures.length, failures };
    },
  };
}
