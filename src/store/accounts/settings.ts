import { eq, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import type { RecordChange } from "./audit.ts";
import type { SettingsStore } from "./contract.ts";

/** JSON that the record of changes may show; the value of any other setting may be a secret. */
const shown: ReadonlySet<string> = new Set(["prices", "key_policy"]);

export function createSettingsStore({ db, tables: { settings } }: Engine, record: RecordChange): SettingsStore {
  const value = db
    .select({ value: settings.value })
    .from(settings)
    .where(eq(settings.name, sql.placeholder("name")))
    .limit(1)
    .prepare();

  const find = async (name: string) => (await value.execute({ name }))[0]?.value;
  const put = async (name: string, text: string): Promise<void> => {
    const row = { target: settings.name, set: { value: text } };
    await db.insert(settings).values({ name, value: text }).onConflictDoUpdate(row);
  };
  return {
    find,
    async set(name, text, by) {
      // Within the caller's transaction, if there is one.
      if (by === undefined) return await put(name, text);
      const read = async () => JSON.parse((await find(name)) ?? "{}") as Record<string, unknown>;
      await record(by, shown.has(name) ? read : undefined, () => put(name, text));
    },
    async setIfAbsent(name, text) {
      await db.insert(settings).values({ name, value: text }).onConflictDoNothing();
      return (await find(name)) ?? text;
    },
  };
}
