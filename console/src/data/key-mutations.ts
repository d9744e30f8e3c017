import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/solid-query";
import { api, bodyOf } from "../client.ts";
import { tell } from "../parts/toasts.tsx";
import type { Key } from "./queries.ts";

export type KeyChange = Partial<Pick<Key, "name" | "is_active">>;

/** Changes a key: the table shows it at once, and takes it back with the reason where the server refuses. */
export function useKeyChange(): UseMutationResult<Key, Error, { key: Key; change: KeyChange }, KeyChange> {
  const queries = useQueryClient();
  const replace = (id: number, change: KeyChange): void => {
    queries.setQueryData<Key[]>(["keys"], (keys) => keys?.map((key) => (key.id === id ? { ...key, ...change } : key)));
  };
  return useMutation(() => ({
    mutationFn: ({ key, change }: { key: Key; change: KeyChange }) => bodyOf(api.keys({ id: key.id }).patch(change)),
    onMutate: async ({ key, change }) => {
      // A list that is on its way was read before the change and would undo it on the screen.
      await queries.cancelQueries({ queryKey: ["keys"] });
      const before: KeyChange = { name: key.name, is_active: key.is_active };
      replace(key.id, change);
      return before;
    },
    onError: (error, { key }, before) => {
      if (before !== undefined) replace(key.id, before);
      // Not the key's own name, which is still the refused one.
      tell(`“${before?.name ?? key.name}” was not changed: ${error.message}`, "error");
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

export function useKeyCreation(): UseMutationResult<Key, Error, { name: string; key?: string }> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (key: { name: string; key?: string }) => bodyOf(api.keys.post(key)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

/** Deletes a key: gone from the table at once, and back with the reason where the server refuses. */
export function useKeyDeletion(): UseMutationResult<unknown, Error, Key, Key[] | undefined> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (key: Key) => bodyOf(api.keys({ id: key.id }).delete()),
    onMutate: async (key) => {
      await queries.cancelQueries({ queryKey: ["keys"] });
      const before = queries.getQueryData<Key[]>(["keys"]);
      queries.setQueryData<Key[]>(["keys"], (keys) => keys?.filter(({ id }) => id !== key.id));
      return before;
    },
    onError: (error, key, before) => {
      queries.setQueryData(["keys"], before);
      tell(`“${key.name}” was not deleted: ${error.message}`, "error");
    },
    onSuccess: (_, key) => tell(`“${key.name}” was deleted`),
    onSettled: () => queries.invalidateQueries(),
  }));
}
