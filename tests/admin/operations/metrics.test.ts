import { expect, test } from "bun:test";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin());

test.each(["/metrics", "/alerts.yaml", "/grafana.json"])(
  "GET %s requires a session or the metrics token",
  async (path) => {
    const { cookie } = await admin.login();
    const key = await admin.createKey(`scraper of ${path}`);
    const status = async (headers: Record<string, string>) => (await admin.send("GET", path, { headers })).status;
    expect(await status({ cookie })).toBe(200);
    expect(await status({ authorization: "Bearer scrape-me" })).toBe(200);
    for (const headers of [
      {},
      { authorization: "Bearer scrape-m" },
      { authorization: "Bearer " },
      { authorization: "Basic scrape-me" },
      { authorization: `Bearer ${key.key}` },
      { cookie: "session=a.b" },
    ] as Array<Record<string, string>>) {
      expect(await status(headers)).toBe(401);
    }
  },
);

test("GET /metrics responds with the registry's text and content type", async () => {
  const response = await admin.send("GET", "/metrics", { headers: { authorization: "Bearer scrape-me" } });
  expect(response.text).toBe("# HELP tollgate_up\ntollgate_up 1\n");
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("no-store");
});

test("GET /metrics requires a session if no metrics token is set", async () => {
  const closed = await startAdmin({ config: { username: "admin", metricsToken: undefined } });
  for (const token of ["undefined", "", "null"]) {
    const response = await closed.send("GET", "/metrics", { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(401);
  }
  await closed.stop();
});

test("GET /alerts.yaml responds with rules for Prometheus", async () => {
  const response = await admin.send("GET", "/alerts.yaml", { headers: { authorization: "Bearer scrape-me" } });
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(Bun.YAML.parse(response.text)).toMatchObject({ groups: [{ name: "tollgate" }] });
});

test("GET /grafana.json responds with a dashboard", async () => {
  const response = await admin.send("GET", "/grafana.json", { headers: { authorization: "Bearer scrape-me" } });
  expect(response.headers.get("content-type")).toStartWith("application/json");
  expect(JSON.parse(response.text)).toMatchObject({ uid: "tollgate", title: "Tollgate" });
});
