import { createSessions } from "../../src/admin/session/session.ts";
import type { Role } from "../../src/domain/changes.ts";
import { createLog } from "../../src/log/log.ts";
import type { Store } from "../../src/store/store.ts";
import type { WallClock } from "../../src/time/clock.ts";

/** What a browser has of somebody who has signed in. */
export interface Person {
  userId: number;
  cookie: string;
  csrf: string;
}

/** Makes a user and its session, as a sign-in at a provider does. */
export async function signIn(
  { store, signingKey, clock }: { store: Store; signingKey: string; clock: WallClock },
  { name, role, teamId = null }: { name: string; role: Role; teamId?: number | null },
): Promise<Person> {
  const identity = { source: "https://id.example", external: crypto.randomUUID() };
  const user = await store.subjects.create("user", { name, teamId, ...identity, createdAt: clock() });
  if (typeof user === "string") throw new Error(user);
  const log = createLog({ level: "error", format: "json", clock, write: () => {} });
  const config = { username: "admin", metricsToken: undefined };
  const person = { userId: user.id, role, providerSid: null, username: name };
  const { cookieValue, csrfToken } = await createSessions({ store, config, signingKey, clock, log }).start({
    address: "127.0.0.1",
    client: null,
    person,
  });
  return { userId: user.id, cookie: `session=${encodeURIComponent(cookieValue)}`, csrf: csrfToken };
}
