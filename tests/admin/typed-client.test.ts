import { expect, test } from "bun:test";
import { treaty } from "@elysiajs/eden";
import type { adminRoutes } from "../../src/admin/routes.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { startAdmin } from "./support/admin-server.ts";
import { shared } from "../support/shared.ts";

// The type checker is half of this test: the console's client knows each path, its request and its responses.

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));

  test("a client typed by the routes can call each of them", async () => {
    const { cookie, csrf } = await admin.login();
    const { api } = treaty<ReturnType<typeof adminRoutes>>(admin.origin, {
      parseDate: false,
      headers: { cookie, "x-csrf-token": csrf },
    });

    const created = await api.keys.post({ name: "typed" });
    const key: { id: number; key: string; last_used_at: string | null } | null = created.data;
    expect(key?.last_used_at).toBeNull();
    const changed = await api.keys({ id: key?.id ?? 0 }).patch({ is_active: false });
    const isActive: boolean | undefined = changed.data?.is_active;
    expect(isActive).toBe(false);
    const days = await api.usage.daily.get({ query: { days: 7 } });
    expect(days.data?.map((row): [string, number] => [row.key_name, row.output_tokens])).toEqual([]);
    const history = await api.usage.history.get({ query: { days: 1, bucket_minutes: 5 } });
    expect(history.data?.points.map(({ bucket_start }): string => bucket_start)).toEqual([]);
    const gpus = await api["gpu-stats"].get();
    expect(gpus.data?.map(({ power_draw_w }): number | null => power_draw_w)).toEqual([]);
    const inFlight: number | undefined = (await api.overview.get()).data?.in_flight;
    expect(inFlight).toBe(3);
    expect((await api.keys({ id: key?.id ?? 0 }).delete()).data?.ok).toBe(true);
    expect((await api.logout.post()).data?.ok).toBe(true);
    const me = await api.me.get();
    expect(me.error?.status).toBe(401);
  });

  test("an invalid request fails the type check, and the server refuses it", async () => {
    const { cookie, csrf } = await admin.login();
    const { api } = treaty<ReturnType<typeof adminRoutes>>(admin.origin, { headers: { cookie, "x-csrf-token": csrf } });
    // @ts-expect-error -- a name is text
    const response = await api.keys.post({ name: 7 });
    expect(response.error?.value).toEqual({ error: "name must be a string" });
  });
});
