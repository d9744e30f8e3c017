import { usageAt } from "../../store/test-store.ts";
import { startAdmin } from "./admin-server.ts";

// Prints the responses of the admin API after traffic around midnight in Seoul, and the hour that shows this process's time zone.

const minute = 60_000;
const midnight = Date.parse("2026-05-02T00:00:00+09:00");
const admin = await startAdmin();
const owner = await admin.login();
const key = await admin.createKey("first");
admin.time.now = midnight + 5 * minute;
for (const at of [midnight - 9 * 60 * minute, midnight - 1, midnight, midnight + minute]) {
  await admin.store.usage.add([usageAt(key.id, at)]);
}
await admin.send("POST", "/api/gpu-stats", {
  headers: { "x-api-key": key.key },
  json: { gpus: [{ gpu_id: 0, name: "a", power_draw_w: 5 }] },
});

const paths = [
  "/api/usage/summary",
  "/api/usage/daily?days=7",
  "/api/usage/history?days=1&bucket_minutes=7",
  "/api/usage/history?days=1&bucket_minutes=1440",
  "/api/usage/chart?bucket_minutes=7",
  "/api/usage/chart?bucket_minutes=1440&from=2026-04-20T00:00Z",
  "/api/usage/costs?by=key_model",
  "/api/gpu-stats",
  "/api/gpu-stats/power-history?bucket_minutes=1440",
  "/api/gpu-stats/history?bucket_minutes=1440",
  "/api/gpu-stats/history?bucket_minutes=1440&gpu_id=0",
  "/api/overview",
];
const responses: string[] = [];
for (const path of paths) responses.push((await admin.send("GET", path, { as: owner })).text);
await admin.stop();
process.stdout.write(JSON.stringify({ hours: new Date(midnight).getHours(), responses }));
