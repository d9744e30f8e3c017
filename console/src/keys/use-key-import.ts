import { useQueryClient } from "@tanstack/solid-query";
import { createSignal } from "solid-js";
import { causeOf } from "../client.ts";
import { forEachInTurn } from "./key-bulk.ts";
import { createKey } from "./key-mutations.ts";
import { setNewKeyDialog } from "./new-key.ts";
import type { Key } from "../queries.ts";

export interface KeyImport {
  total: number;
  /** With their secrets. */
  keys: readonly Key[];
  failures: readonly { name: string; cause: string }[];
}

/** Creates a key for each name. The dialog guards their secrets from the first request on. */
export function useKeyImport(): { imported: () => KeyImport | undefined; create: (names: readonly string[]) => void } {
  const queries = useQueryClient();
  const [imported, setImported] = createSignal<KeyImport>();
  const update = (change: (before: KeyImport) => Partial<KeyImport>): void =>
    void setImported((before) => before && { ...before, ...change(before) });

  async function create(names: readonly string[]): Promise<void> {
    setNewKeyDialog("secret");
    setImported({ total: names.length, keys: [], failures: [] });
    await forEachInTurn(
      names,
      async (name) => {
        const key = await createKey({ name });
        update(({ keys }) => ({ keys: [...keys, key] }));
      },
      (name, error) => {
        if (error !== undefined)
          update(({ failures }) => ({ failures: [...failures, { name, cause: causeOf(error) }] }));
      },
    );
    // Without a secret, nothing is lost.
    if (imported()?.keys.length === 0) setNewKeyDialog("saved");
    await queries.invalidateQueries({ queryKey: ["keys"] });
  }

  return { imported, create: (names) => void create(names) };
}
