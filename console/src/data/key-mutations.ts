import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import type { Key } from "./queries.ts";
import { showToast } from "./toasts.ts";

interface KeySwitch {
  key: Key;
  isActive: boolean;
  /** Also ends the responses that run. */
  endRunning?: boolean;
}

/**
 * Switches a key on or off. The table shows the change at once and reverts it with a message if the server refuses.
 * After switching off, a message offers to undo it.
 */
export function useSwitchKey(): UseMutationResult<Key, Error, KeySwitch> {
  const queries = useQueryClient();
  const show = ({ key, isActive }: KeySwitch): void => {
    queries.setQueryData<Key[]>(["keys"], (keys) =>
      keys?.map((listed) => (listed.id === key.id ? { ...listed, is_active: isActive } : listed)),
    );
  };
  const mutation = useMutation(() => ({
    mutationFn: ({ key, isActive, endRunning = false }: KeySwitch) =>
      responseBody(
        api.keys({ id: key.id }).patch({ is_active: isActive, ...(endRunning ? { end_running: true } : {}) }),
      ),
    onMutate: async (change) => {
      // A list already requested was read before the change and would undo it on the screen.
      await queries.cancelQueries({ queryKey: ["keys"] });
      show(change);
    },
    onError: (error, { key, isActive }) => {
      show({ key, isActive: !isActive });
      showToast(`“${key.name}” was not changed: ${error.message}`, "error");
    },
    onSuccess: (_, { key, isActive }) => {
      if (isActive) return;
      const undo = (): void => mutation.mutate({ key, isActive: true });
      showToast(`“${key.name}” is off: its requests are rejected`, "info", undo);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
  return mutation;
}

/** Renames a key. The table shows the new name once the server has accepted it. */
export function useRenameKey(): UseMutationResult<Key, Error, { key: Key; name: string }> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: ({ key, name }: { key: Key; name: string }) => responseBody(api.keys({ id: key.id }).patch({ name })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

/** What PATCH takes besides the name and the state; null clears a field. */
export type KeyFields = Partial<
  Pick<
    Key,
    | "max_concurrency"
    | "requests_per_minute"
    | "tokens_per_minute"
    | "tokens_per_day"
    | "tokens_per_month"
    | "allowed_models"
    | "expires_at"
    | "owner"
    | "note"
  >
> & { tags?: string[] | null };

/** Changes a key's limits and notes. The table shows them once the server has accepted them. */
export function useChangeKey(): UseMutationResult<Key, Error, { key: Key; fields: KeyFields }> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: ({ key, fields }: { key: Key; fields: KeyFields }) =>
      responseBody(api.keys({ id: key.id }).patch(fields)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

export function useCreateKey(): UseMutationResult<Key, Error, { name: string; key?: string }> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (key: { name: string; key?: string }) => responseBody(api.keys.post(key)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
}

interface KeyDeletion {
  key: Key;
  /** Also ends the responses that run. */
  endRunning: boolean;
}

/** Deletes a key. It leaves the table at once and comes back with a message if the server refuses. */
export function useDeleteKey(): UseMutationResult<unknown, Error, KeyDeletion, Key[] | undefined> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: ({ key, endRunning }: KeyDeletion) =>
      responseBody(api.keys({ id: key.id }).delete(undefined, { query: endRunning ? { end_running: "true" } : {} })),
    onMutate: async ({ key }) => {
      await queries.cancelQueries({ queryKey: ["keys"] });
      const before = queries.getQueryData<Key[]>(["keys"]);
      queries.setQueryData<Key[]>(["keys"], (keys) => keys?.filter(({ id }) => id !== key.id));
      return before;
    },
    onError: (error, { key }, before) => {
      queries.setQueryData(["keys"], before);
      showToast(`“${key.name}” was not deleted: ${error.message}`, "error");
    },
    onSuccess: (_, { key }) => showToast(`“${key.name}” was deleted`),
    onSettled: () => queries.invalidateQueries(),
  }));
}
