import { beforeEach, describe, expect, test } from "bun:test";
import { createLoginAttempts } from "../../../src/admin/session/login-attempts.ts";
import { createLog } from "../../../src/log/log.ts";
import type { AttemptLimit, RefusedAttempt } from "../../../src/store/accounts/contract.ts";
import type { Store } from "../../../src/store/store.ts";

const time = { now: 0 };
/** What the database answers, and what it was asked. */
let refused: RefusedAttempt | undefined;
let counted: AttemptLimit[][];
let logged: string[];
let attempts: ReturnType<typeof createLoginAttempts>;
beforeEach(() => {
  time.now = 1_000_000;
  refused = undefined;
  counted = [];
  logged = [];
  const clock = () => time.now;
  const countLoginAttempt = async (limits: readonly AttemptLimit[]) => {
    counted.push([...limits]);
    return refused;
  };
  attempts = createLoginAttempts({
    store: { sessions: { countLoginAttempt } as unknown as Store["sessions"] },
    clock,
    log: createLog({ level: "debug", format: "json", clock, write: (line) => logged.push(line) }),
  });
});

const stranger = (address: string) => ({ address, isKnown: false });
const known = (address: string) => ({ address, isKnown: true });
const isRefused = (client: { address: string; isKnown: boolean }) => {
  try {
    attempts.throwIfRefused(client);
    return false;
  } catch {
    return true;
  }
};

describe("an attempt counts", () => {
  test.each([
    [stranger("192.0.2.1"), [{ scope: "192.0.2.1", attempts: 10 }]],
    [
      stranger("2001:db8:1:2::3"),
      [
        { scope: "2001:db8:1:2::/64", attempts: 10 },
        { scope: "2001:db8:1::/48", attempts: 60 },
      ],
    ],
    [known("2001:db8:1:2::3"), [{ scope: "2001:db8:1:2::/64", attempts: 10 }]],
  ])("for %j with %j", async (client, limits) => {
    await attempts.count(client);
    expect(counted).toEqual([limits]);
  });
});

describe("a refusal", () => {
  test("of a /48 holds for its other networks, but not for known clients", async () => {
    refused = { scope: "2001:db8:1::/48", waitMs: 1000 };
    await attempts.count(stranger("2001:db8:1:2::3")).catch(() => {});
    expect(isRefused(stranger("2001:db8:1:ffff::1"))).toBe(true);
    expect(isRefused(known("2001:db8:1:ffff::1"))).toBe(false);
    expect(isRefused(stranger("2001:db8:2::1"))).toBe(false);
  });

  test("is forgotten if the clock is set back", async () => {
    refused = { scope: "192.0.2.1", waitMs: 60_000 };
    await attempts.count(stranger("192.0.2.1")).catch(() => {});
    expect(isRefused(stranger("192.0.2.1"))).toBe(true);
    time.now -= 1;
    expect(isRefused(stranger("192.0.2.1"))).toBe(false);
  });

  test("is remembered of the latest 10,000", async () => {
    for (let host = 0; host <= 10_000; host++) {
      refused = { scope: `host ${host}`, waitMs: 60_000 };
      await attempts.count(stranger(`host ${host}`)).catch(() => {});
    }
    expect([isRefused(stranger("host 0")), isRefused(stranger("host 1"))]).toEqual([false, true]);
  });
});
