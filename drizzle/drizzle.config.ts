import { defineConfig } from "drizzle-kit";

/** `bun drizzle-kit generate --config drizzle/drizzle.config.ts` writes the next SQLite migration. */
export default defineConfig({
  dialect: "sqlite",
  schema: ["./src/store/schema/schema.ts", "./src/store/sqlite/staged-flushes.ts"],
  out: "./drizzle/migrations",
  casing: "snake_case",
});
