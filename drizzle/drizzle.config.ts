import { defineConfig } from "drizzle-kit";

/** `bun drizzle-kit generate --config drizzle/drizzle.config.ts` writes the next SQLite migration. */
export default defineConfig({
  dialect: "sqlite",
  schema: ["./drizzle/tables.cjs", "./src/store/sqlite/staged-flushes.ts"],
  out: "./drizzle/migrations",
  casing: "snake_case",
});
