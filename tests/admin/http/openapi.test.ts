import { beforeAll, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { startTollgate } from "../../support/tollgate.ts";
import { type Document, problemsOfResponse } from "../support/document.ts";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

let document: Document & { security: unknown };
const admin = shared(() => startAdmin());
beforeAll(async () => {
  document = (await admin.send("GET", "/api/openapi.json", { as: await admin.login() })).json;
});

const operations = (): Array<[string, Record<string, unknown>]> =>
  Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]): [string, Record<string, unknown>] => [
      `${verb.toUpperCase()} ${path}`,
      { ...operation },
    ]),
  );

test("the document contains every route, and nothing else", () => {
  const routes = admin.routes.filter(({ method }) => method !== "ALL");
  expect(
    operations()
      .map(([name]) => name)
      .toSorted(),
  ).toEqual(routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`).toSorted());
});

test.each([
  ["on one port", {}],
  ["on a port of its own", { ADMIN_PORT: "0" }],
])("the document of a whole server with the admin side %s contains no other path", async (_, environment) => {
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: "http://127.0.0.1:1", ...environment });
  const served = await gate.admin.expectOk<Document>("GET", "/api/openapi.json");
  expect(Object.keys(served.paths).toSorted()).toEqual(Object.keys(document.paths).toSorted());
});

test("each operation has a summary and responses", () => {
  for (const [name, operation] of operations()) {
    expect([name, operation["summary"]]).toEqual([name, expect.stringMatching(/\S/)]);
    expect(Object.keys(operation["responses"] ?? {}).length).toBeGreaterThan(0);
  }
});

test("what is open, and what takes the credentials of others than administrators and programs", () => {
  expect(document.security).toEqual([{ session: [] }]);
  const secured = operations().flatMap(([name, { security = [] }]) => {
    const [first] = security as { session?: unknown }[];
    return first?.session !== undefined && name.includes(" /api/") ? [] : [[name, security]];
  });
  expect(Object.fromEntries(secured)).toEqual({
    "GET /healthz": [],
    "GET /readyz": [],
    "GET /metrics": [{ session: [] }, { metricsToken: [] }],
    "GET /alerts.yaml": [{ session: [] }, { metricsToken: [] }],
    "GET /grafana.json": [{ session: [] }, { metricsToken: [] }],
    "GET /api/login": [],
    "POST /api/login": [],
    "GET /api/me": [],
    "POST /api/gpu-stats": [{ bearer: [] }, { xApiKey: [] }],
    "GET /api/own-key": [{ bearer: [] }, { xApiKey: [] }],
    "GET /api/own-key/activity": [{ bearer: [] }, { xApiKey: [] }],
  });
});

test("query parameters are optional, with a range and a default", () => {
  const parameters = Object.fromEntries(operations())["GET /api/usage/daily"]?.["parameters"];
  expect(parameters).toEqual([
    {
      name: "days",
      in: "query",
      required: false,
      schema: expect.objectContaining({ minimum: 7, maximum: 365, default: 90 }),
    },
  ]);
});

test("request bodies are JSON", () => {
  for (const name of ["POST /api/login", "POST /api/keys", "PATCH /api/keys/{id}", "POST /api/gpu-stats"]) {
    const body = Object.fromEntries(operations())[name]?.["requestBody"] as { content: object };
    expect(Object.keys(body.content)).toEqual(["application/json"]);
  }
});

// The test server checks every response against the document; these tests check that check.
const problemsOf = (status: number, value: unknown) =>
  problemsOfResponse(document, {
    method: "GET",
    path: "/api/usage/summary",
    status,
    contentType: "application/json;charset=utf-8",
    text: JSON.stringify(value),
  });
const good = { date: "2026-05-01", request_count: 1, input_tokens: 2, output_tokens: 3, total_tokens: 5 };

test("a documented response has no problems", () => {
  expect(problemsOf(200, good)).toEqual([]);
});

test.each([
  [200, { ...good, date: "1.5.2026" }, "date is not a valid date"],
  [200, { ...good, total_tokens: "5" }, "total_tokens is string"],
  [200, { ...good, total_tokens: 5.5 }, "total_tokens is number"],
  [200, { ...good, total_tokens: -5 }, "out of range"],
  [200, { ...good, total_tokens: null }, "total_tokens is null"],
  [200, { ...good, total_tokens: undefined }, "total_tokens is missing"],
  [200, { ...good, secret: "x" }, "secret is not documented"],
  [200, [good], "is array"],
  [418, good, "may not have status 418"],
  [401, { message: "no" }, "error is missing"],
])("the check finds the undocumented response %d %j", (status, value, problem) => {
  expect(problemsOf(status, value).join()).toContain(problem);
});

test.each([
  ["2024-02-29", true],
  ["2026-02-29", false],
  ["2026-05", false],
  ["2026-05-01T00:00:00Z", false],
  ["", false],
])("the format of a date is that of a day: %p %p", (text, isOne) => {
  expect(Value.Check(Type.String({ format: "date" }), text)).toBe(isOne);
});
