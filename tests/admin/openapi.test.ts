import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Document, problemsOfAnswer } from "./support/document.ts";
import { type Admin, startAdmin } from "./support/admin-server.ts";

let admin: Admin;
let document: Document & { security: unknown };
beforeAll(async () => {
  admin = await startAdmin();
  document = (await admin.send("GET", "/api/openapi.json", { as: await admin.login() })).json;
});
afterAll(() => admin.stop());

const operations = (): Array<[string, Record<string, unknown>]> =>
  Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]): [string, Record<string, unknown>] => [
      `${verb.toUpperCase()} ${path}`,
      { ...operation },
    ]),
  );

test("the document names every route, and nothing else", () => {
  expect(
    operations()
      .map(([name]) => name)
      .toSorted(),
  ).toEqual(
    [
      "GET /healthz",
      "GET /readyz",
      "GET /metrics",
      "POST /api/login",
      "POST /api/logout",
      "GET /api/me",
      "GET /api/keys",
      "POST /api/keys",
      "PATCH /api/keys/{id}",
      "DELETE /api/keys/{id}",
      "GET /api/usage/summary",
      "GET /api/usage/total",
      "GET /api/usage/daily",
      "GET /api/usage/history",
      "GET /api/gpu-stats",
      "POST /api/gpu-stats",
      "GET /api/gpu-stats/power-history",
      "GET /api/overview",
      "GET /api/openapi.json",
    ].toSorted(),
  );
});

test("each of its operations has a summary and answers", () => {
  for (const [name, operation] of operations()) {
    expect([name, operation["summary"]]).toEqual([name, expect.stringMatching(/\S/)]);
    expect(Object.keys(operation["responses"] ?? {}).length).toBeGreaterThan(0);
  }
});

test("its security is a session, and the CSRF token besides for what changes something", () => {
  expect(document.security).toEqual([{ session: [] }]);
  const secured = operations().flatMap(([name, { security }]) => (security === undefined ? [] : [[name, security]]));
  expect(Object.fromEntries(secured)).toEqual({
    "GET /healthz": [],
    "GET /readyz": [],
    "GET /metrics": [{ session: [] }, { metricsToken: [] }],
    "POST /api/login": [],
    "GET /api/me": [],
    "POST /api/gpu-stats": [{ bearer: [] }, { xApiKey: [] }],
    "POST /api/logout": [{ session: [], csrf: [] }],
    "POST /api/keys": [{ session: [], csrf: [] }],
    "PATCH /api/keys/{id}": [{ session: [], csrf: [] }],
    "DELETE /api/keys/{id}": [{ session: [], csrf: [] }],
  });
});

test("its query parameters are optional, with range and default", () => {
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

test("its bodies are JSON", () => {
  for (const name of ["POST /api/login", "POST /api/keys", "PATCH /api/keys/{id}", "POST /api/gpu-stats"]) {
    const body = Object.fromEntries(operations())[name]?.["requestBody"] as { content: object };
    expect(Object.keys(body.content)).toEqual(["application/json"]);
  }
});

// Every answer of every test goes through this check, so it has to find what is wrong.
const answer = (status: number, value: unknown) =>
  problemsOfAnswer(document, {
    method: "GET",
    path: "/api/usage/summary",
    status,
    contentType: "application/json;charset=utf-8",
    text: JSON.stringify(value),
  });
const good = { date: "2026-05-01", request_count: 1, input_tokens: 2, output_tokens: 3, total_tokens: 5 };

test("an answer that the document promises has no problems", () => {
  expect(answer(200, good)).toEqual([]);
});

test.each([
  [200, { ...good, date: "1.5.2026" }, "date is no date"],
  [200, { ...good, total_tokens: "5" }, "total_tokens is string"],
  [200, { ...good, total_tokens: 5.5 }, "total_tokens is number"],
  [200, { ...good, total_tokens: -5 }, "out of range"],
  [200, { ...good, total_tokens: null }, "total_tokens is null"],
  [200, { ...good, total_tokens: undefined }, "total_tokens is missing"],
  [200, { ...good, secret: "x" }, "secret is not documented"],
  [200, [good], "is array"],
  [418, good, "may not answer 418"],
  [401, { message: "no" }, "error is missing"],
])("an answer %d %j that it does not promise is found", (status, value, problem) => {
  expect(answer(status, value).join()).toContain(problem);
});
