import type { Engine } from "../engine/engine.ts";
import type { KeyId } from "../../domain/keys.ts";

/** The names of all keys; a deleted key has its last name. */
export async function readKeyNames({ db, tables: { keys, deletedKeys } }: Engine): Promise<Map<KeyId, string>> {
  const deleted = await db.select({ id: deletedKeys.id, name: deletedKeys.name }).from(deletedKeys);
  const existing = await db.select({ id: keys.id, name: keys.name }).from(keys);
  return new Map([...deleted, ...existing].map(({ id, name }) => [id, name]));
}

/** The name of a key as JSON. */
export type GetKeyName = (keyId: KeyId) => string;

/** Reads all names once per report, and again only if a row has a newer key. */
export function createNameReader(engine: Engine): (rows: readonly { keyId: KeyId }[]) => Promise<GetKeyName> {
  let names = new Map<KeyId, string>();
  return async (found) => {
    if (found.some(({ keyId }) => !names.has(keyId))) {
      names = new Map(Array.from(await readKeyNames(engine), ([id, name]) => [id, JSON.stringify(name)]));
    }
    return (keyId) => names.get(keyId) ?? '""';
  };
}
