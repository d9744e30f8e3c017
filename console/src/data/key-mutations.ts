import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import type { Key } from "./queries.ts";
import { showToast } from "./toasts.ts";

export type KeyUpdate = Partial<Pick<Key, "name" | "is_active">>;

/** Updates a key. The table shows the change at once and reverts it with a message if the server refuses. */
export function useUpdateKey(): UseMutationResult<Key, Error, { key: Key; update: KeyUpdate }, KeyUpdate> {
  const queries = useQueryClient();
  const replace = (id: number, update: KeyUpdate): void => {
    queries.setQueryData<Key[]>(["keys"], (keys) => keys?.map((key) => (key.id === id ? { ...key, ...update } : key)));
  };
  return useMutation(() => ({
    mutationFn: ({ key, update }: { key: Key; update: KeyUpdate }) =>
      responseBody(api.keys({ id: key.id }).patch(update)),
    onMutate: async ({ key, update }) => {
      // A list already requested was read before the change and would undo it on the screen.
      await queries.cancelQueries({ queryKey: ["keys"] });
      const before: KeyUpdate = { name: key.name, is_active: key.is_active };
      replace(key.id, update);
      return before;
    },
    onError: (error, { key }, before) => {
      if (before !== undefined) replace(key.id, before);
      // `key` already has the new name, which the server refused.
      showToast(`“${before?.name ?? key.name}” was not changed: ${error.message}`, "error");
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

export function useCreateKey(): UseMutationResult<Key, Error, { name: string; key?: string }> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (key: { name: string; key?: string }) => responseBody(api.keys.post(key)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

/** Deletes a key. It leaves the table at once and comes back with a message if the server refuses. */
export function useDeleteKey(): UseMutationResult<unknown, Error, Key, Key[] | undefined> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (key: Key) => responseBody(api.keys({ id: key.id }).delete()),
    onMutate: async (key) => {
      await queries.cancelQueries({ queryKey: ["keys"] });
      const before = queries.getQueryData<Key[]>(["keys"]);
      queries.setQueryData<Key[]>(["keys"], (keys) => keys?.filter(({ id }) => id !== key.id));
      return before;
    },
    onError: (error, key, before) => {
      queries.setQueryData(["keys"], before);
      showToast(`“${key.name}” was not deleted: ${error.message}`, "error");
    },
    onSuccess: (_, key) => showToast(`“${key.name}” was deleted`),
    onSettled: () => queries.invalidateQueries(),
  }));
}
