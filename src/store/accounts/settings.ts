import { eq, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import type { SettingsStore } from "./contract.ts";

export function createSettingsStore({ db, tables: { settings } }: Engine): SettingsStore {
  const value = db
    .select({ value: settings.value })
    .from(settings)
    .where(eq(settings.name, sql.placeholder("name")))
    .limit(1)
    .prepare();

  const find = async (name: string) => (await value.execute({ name }))[0]?.value;
  return {
    find,
    async set(name, text) {
      await db
        .insert(settings)
        .values({ name, value: text })
        .onConflictDoUpdate({ target: settings.name, set: { value: text } });
    },
    async setIfAbsent(name, text) {
      await db.insert(settings).values({ name, value: text }).onConflictDoNothing();
      return (await find(name)) ?? text;
    },
  };
}
