import {
  type QueryClient,
  type QueryKey,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/solid-query";
import { createSignal } from "solid-js";
import { api, responseBody } from "../client.ts";
import { showToast } from "../lib/toasts.ts";
import { type Key, useChange } from "../queries.ts";
import type { LimitName } from "../../../src/domain/limits.ts";
import type { Limits } from "./limit-fields.tsx";

interface KeySwitch {
  key: Key;
  isActive: boolean;
  /** Whether the responses that run are to end; undefined: the console asks. */
  endRunning?: boolean;
}

const switchName = "switch-key";
/** The one of all keys, and those of a single one. */
const allLists = { queryKey: ["keys"] };

/**
 * Switches a key on or off. The table shows the change at once and reverts it with a message if the server refuses.
 * After switching off, a message offers to undo it.
 */
export function useSwitchKey(): UseMutationResult<Key, Error, KeySwitch> {
  const queries = useQueryClient();
  const show = ({ key, isActive }: KeySwitch): void => {
    queries.setQueriesData<Key[]>(allLists, (keys) =>
      keys?.map((listed) => (listed.id === key.id ? { ...listed, is_active: isActive } : listed)),
    );
  };
  /** Whether the key was not switched again meanwhile. */
  const isLatest = (change: KeySwitch): boolean =>
    queries
      .getMutationCache()
      .findAll({ mutationKey: [switchName] })
      .map(({ state }) => state.variables as KeySwitch | undefined)
      .findLast((other) => other?.key.id === change.key.id) === change;
  const mutation = useMutation(() => ({
    mutationKey: [switchName],
    // One after the other, so that the server is left with the last one.
    scope: { id: switchName },
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
    onSuccess: (_, change) => {
      const { key, isActive, endRunning } = change;
      if (isActive || !isLatest(change)) return;
      if (endRunning === undefined) void askAboutRunning(key, () => isLatest(change));
      const undo = (): void => mutation.mutate({ key, isActive: true });
      showToast(`“${key.name}” is off: its requests are refused`, "info", undo);
    },
    // The list does not have the switches that wait yet, and would undo them on the screen.
    onSettled: () =>
      queries.isMutating({ mutationKey: [switchName] }) > 1
        ? undefined
        : queries.invalidateQueries({ queryKey: ["keys"] }),
  }));
  return mutation;
}

/** Renames a key. The table shows the new name once the server has accepted it. */
export const useRenameKey = () =>
  useChange(({ key, name }: { key: Key; name: string }) => responseBody(api.keys({ id: key.id }).patch({ name })), {
    refreshes: ["keys"],
  });

/** What POST and PATCH take besides the name and the state; null clears a field. */
export type KeyFields = Partial<
  Pick<
    Key,
    | LimitName
    | "allowed_models"
    | "allowed_paths"
    | "expires_at"
    | "scope"
    | "owner"
    | "note"
    | "team_id"
    | "limits_extra"
    | "notify"
    | "priority"
    | "users_from"
  >
> & {
  tags?: string[] | null;
  user_limits?: Limits | null;
  /** Of signed users; no response has it. */
  users_secret?: string | null;
};

/** Teams count their keys. */
const keysAndTeams = ["keys", "teams"];

/** With the teams, which count their keys. */
export const refresh = (queries: QueryClient, noun: "key" | "user"): Promise<unknown> =>
  Promise.all([[`${noun}s`], ["teams"]].map((queryKey) => queries.invalidateQueries({ queryKey })));

/** Changes a key's limits and notes. The table shows them once the server has accepted them. */
export const useChangeKey = () =>
  useChange(
    ({ key, fields }: { key: Key; fields: KeyFields }) => responseBody(api.keys({ id: key.id }).patch(fields)),
    { refreshes: keysAndTeams },
  );

type NewKey = KeyFields & { name: string; key?: string };

/** @returns the key with its secret */
export const createKey = (key: NewKey): Promise<Key> => responseBody(api.keys.post(key));

export const useCreateKey = () => useChange(createKey, { refreshes: keysAndTeams });

/** Replaces a key's secret; the old one is accepted for some minutes more. */
export const useRotateKey = () =>
  useChange(
    ({ key, graceMinutes }: { key: Key; graceMinutes: number }): Promise<Key> =>
      responseBody(api.keys({ id: key.id }).rotate.post({ grace_minutes: graceMinutes })),
    { refreshes: ["keys"] },
  );

interface KeyDeletion {
  key: Key;
  /** Also ends the responses that run. */
  endRunning: boolean;
}

/** Deletes a key. It leaves the table at once and comes back with a message if the server refuses. */
export function useDeleteKey(): UseMutationResult<unknown, Error, KeyDeletion, [QueryKey, Key[] | undefined][]> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: ({ key, endRunning }: KeyDeletion) =>
      responseBody(api.keys({ id: key.id }).delete(undefined, { query: endRunning ? { end_running: "true" } : {} })),
    onMutate: async ({ key }) => {
      await queries.cancelQueries({ queryKey: ["keys"] });
      const before = queries.getQueriesData<Key[]>(allLists);
      queries.setQueriesData<Key[]>(allLists, (keys) => keys?.filter(({ id }) => id !== key.id));
      return before;
    },
    onError: (error, { key }, before) => {
      // A session that ended meanwhile has taken its list along, and the next one must not find it.
      for (const [list, keys] of before ?? []) queries.setQueryData<Key[]>(list, (shown) => shown && keys);
      showToast(`“${key.name}” was not deleted: ${error.message}`, "error");
    },
    onSuccess: (_, { key }) => showToast(`“${key.name}” was deleted`),
    onSettled: () => queries.invalidateQueries(),
  }));
}

/** A key that was switched off while responses of it run. */
interface RunningQuestion {
  key: Key;
  /** Undefined: more requests run than the API lists, none of the listed ones is the key's. */
  count: number | undefined;
}

const [runningQuestion, setRunningQuestion] = createSignal<RunningQuestion>();
export { runningQuestion };

export const closeRunningQuestion = (): void => setRunningQuestion();

/**
 * Asks whether the responses of a key are to end, if any run. Only after it is off, which must not wait for the answer.
 * @param isStillOff whether the question still makes sense
 */
async function askAboutRunning(key: Key, isStillOff: () => boolean): Promise<void> {
  const running = await responseBody(api["in-flight"].get()).catch(() => undefined);
  if (running === undefined || !isStillOff()) return;
  const count = running.requests.filter(({ key_id: keyId }) => keyId === key.id).length;
  if (count > 0 || running.more) setRunningQuestion({ key, count: count > 0 ? count : undefined });
}
