import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { passwordHashSetting, verifyPassword } from "../../../src/admin/session/password.ts";
import { type BootstrapAdmin, bootstrapAdmin } from "../../../src/admin/session/bootstrap.ts";
import type { WallClock } from "../../../src/time/clock.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { openTestEngine as openSqliteTestEngine, type TestEngine } from "../../store/test-store.ts";
import { quickPasswordHash } from "../../support/admin-client.ts";
import { createTempFolder, type TempFolder } from "../../support/temp-folder.ts";
import { openTestStore } from "../support/store.ts";

/** Starts one after the other on a store, without a server. */
function startsOn(openEngine: (clock: WallClock) => Promise<TestEngine>) {
  let opened: TestEngine;
  let folder: TempFolder;
  const printed: string[] = [];
  beforeEach(async () => {
    opened = await openEngine(() => 1);
    folder = createTempFolder();
    printed.length = 0;
  });
  afterEach(async () => {
    await opened[Symbol.asyncDispose]();
    folder.remove();
  });
  return {
    printed,
    store: () => opened.store,
    dataDir: () => folder.path,
    bootstrap: (
      config: Partial<BootstrapAdmin["config"]> = {},
      on: Pick<BootstrapAdmin, "store" | "dataDir"> = { store: opened.store, dataDir: folder.path },
    ) =>
      bootstrapAdmin({
        store: on.store,
        dataDir: on.dataDir,
        config: { username: "admin", password: undefined, secretKey: undefined, ...config },
        print: (text) => printed.push(text),
      }),
  };
}

onEachEngine(({ engine, openTestEngine }) => {
  const { printed, store, bootstrap } = startsOn(openTestEngine);
  const storedHash = async () => (await store().settings.find(passwordHashSetting)) ?? "";
  const liveSession = async () => {
    await store().sessions.create("hash", { csrfToken: "token", username: "admin", expiresAt: 2 });
    return async () => (await store().sessions.find("hash", 1)) !== undefined;
  };

  describe("the first start without ADMIN_PASSWORD", () => {
    test("prints a password that works, and stores only its hash", async () => {
      await bootstrap({ username: "root" });
      const password = /password {3}(\S+)/.exec(printed.join(""))?.[1] ?? "";
      expect(password).toMatch(/^[a-z2-9]{5}(-[a-z2-9]{5}){3}$/);
      expect(printed.join("")).toContain("root");
      expect(await storedHash()).toStartWith("$argon2id$");
      expect(await verifyPassword(password, await storedHash())).toBe(true);
    });

    test("prints one password if several processes start at once, and all of them use one signing key", async () => {
      const shared = await openTestStore(undefined, undefined, engine);
      const starts = Array.from({ length: 3 }, async () => {
        const script = `${import.meta.dir}/../support/bootstrap-report.ts`;
        const child = Bun.spawn([process.execPath, script, shared.dataDir, shared.databaseUrl ?? ""], {
          stdout: "pipe",
        });
        return JSON.parse(await new Response(child.stdout).text()) as { signingKey: string; printed: string[] };
      });
      const own = bootstrap({}, shared).then(({ signingKey }) => ({ signingKey, printed }));
      const reports = await Promise.all([...starts, own]);
      const shown = reports.flatMap((report) => report.printed);
      expect(shown).toHaveLength(1);
      const password = /password {3}(\S+)/.exec(shown.join(""))?.[1] ?? "";
      const hash = await shared.store.settings.find(passwordHashSetting);
      expect(await verifyPassword(password, hash ?? "")).toBe(true);
      expect(new Set(reports.map(({ signingKey }) => signingKey)).size).toBe(1);
      await shared.remove();
    });

    test("is the only start that prints one", async () => {
      await bootstrap();
      const hash = await storedHash();
      await bootstrap();
      expect(printed).toHaveLength(1);
      expect(await storedHash()).toBe(hash);
    });
  });

  describe("ADMIN_PASSWORD", () => {
    test("wins over a generated password, is not printed, and ends all sessions", async () => {
      await bootstrap();
      printed.length = 0;
      const lives = await liveSession();
      await bootstrap({ password: "chosen" });
      expect(printed).toEqual([]);
      expect(await verifyPassword("chosen", await storedHash())).toBe(true);
      expect(await lives()).toBe(false);
    });

    test("keeps the sessions at a restart if it is unchanged", async () => {
      await bootstrap({ password: "chosen" });
      const lives = await liveSession();
      await bootstrap({ password: "chosen" });
      expect(await lives()).toBe(true);
    });

    test("ends all sessions if it is changed", async () => {
      await bootstrap({ password: "chosen" });
      const lives = await liveSession();
      await bootstrap({ password: "changed" });
      expect(await lives()).toBe(false);
      expect(await verifyPassword("chosen", await storedHash())).toBe(false);
    });

    test("stays in force if it is unset again", async () => {
      await bootstrap({ password: "chosen" });
      await bootstrap();
      expect(printed).toEqual([]);
      expect(await verifyPassword("chosen", await storedHash())).toBe(true);
    });
  });
});

describe("the signing key", () => {
  const { store, dataDir, bootstrap } = startsOn(openSqliteTestEngine);
  const file = () => join(dataDir(), "secret_key");
  // A password exists, so that no start takes the time to hash one.
  beforeEach(() => store().settings.set(passwordHashSetting, quickPasswordHash));

  test("is SECRET_KEY if that is set, and no file is created", async () => {
    expect(await bootstrap({ secretKey: "sixteen letters." })).toEqual({ signingKey: "sixteen letters." });
    expect(await readdir(dataDir())).not.toContain("secret_key");
  });

  test("is created once, readable only by its owner, without leaving a temporary file", async () => {
    const { signingKey } = await bootstrap();
    expect(signingKey).toMatch(/^[0-9a-f]{64}$/);
    expect((await stat(file())).mode & 0o777).toBe(0o600);
    expect((await readdir(dataDir())).filter((name) => name.startsWith("secret_key"))).toEqual(["secret_key"]);
    expect((await bootstrap()).signingKey).toBe(signingKey);
  });

  test("is read without the newline that an editor adds", async () => {
    await writeFile(file(), "0123456789abcdef0123456789abcdef\r\n");
    expect((await bootstrap()).signingKey).toBe("0123456789abcdef0123456789abcdef");
  });
});
