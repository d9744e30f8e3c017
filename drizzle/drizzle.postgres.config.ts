import { defineConfig } from "drizzle-kit";

/** `bun drizzle-kit generate --config drizzle/drizzle.postgres.config.ts` writes the next PostgreSQL migration. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./drizzle/postgres-tables.cjs",
  out: "./drizzle/postgres-migrations",
  casing: "snake_case",
});
