import { describe } from "bun:test";
import type { WallClock } from "../../src/time/clock.ts";
import { type EngineName, whyNoPostgres } from "../support/postgres.ts";
import { openPostgresTestEngine, openPostgresTestStore } from "./postgres/postgres-test-store.ts";
import { openTestEngine, openTestStore, type TestEngine, type TestStore } from "./test-store.ts";

interface TestStores {
  engine: EngineName;
  openTestStore(clock?: WallClock): Promise<TestStore>;
  openTestEngine(clock?: WallClock): Promise<TestEngine>;
}

/** Runs the same tests on SQLite and on PostgreSQL. */
export function onEachEngine(tests: (stores: TestStores) => void): void {
  describe("on SQLite", () => tests({ engine: "SQLite", openTestStore, openTestEngine }));
  describe.skipIf(whyNoPostgres !== undefined)("on PostgreSQL", () =>
    tests({ engine: "PostgreSQL", openTestStore: openPostgresTestStore, openTestEngine: openPostgresTestEngine }),
  );
}
