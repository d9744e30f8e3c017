import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";

let admin: Admin;
let owner: Required<Visitor>;
beforeAll(async () => {
  admin = await startAdmin();
  owner = await admin.login();
});
afterAll(() => admin.stop());

const explain = (json: object) => admin.send("POST", "/api/explain", { as: owner, json });

test("an explanation has the body as it would be sent, and a reason for each edit", async () => {
  const body = '{"model":"claude-x", "max_tokens":99999,"messages":[{"role":"user","content":"Why is the sky blue?"}]}';
  const { json } = await explain({ path: "/v1/chat/completions", body });
  expect(json).toMatchObject({
    refused: null,
    changed: true,
    stream: false,
    model: { asked: "claude-x", sent: "Served" },
  });
  expect(json.body).toStartWith('{"model":"Served", "max_tokens":16384,"messages":[{"role":"system"');
  expect(json.edits.map(({ what, from, to }: Record<string, string>) => [what, from, to?.slice(0, 12)])).toEqual([
    ["model", "claude-x", "Served"],
    ["max_tokens", "99999", "16384"],
    ["system_prompt_language", null, "Write in the"],
  ]);
  for (const { why } of json.edits) expect(why).toMatch(/^[A-Z].*\.$/);
});

test.each([
  ["", "/v1/chat/completions"],
  ["no JSON", "/v1/chat/completions"],
  ['{"model":"unknown"}', "/v1/files"],
])("the body %p on %s is forwarded as it is", async (body, path) => {
  expect((await explain({ path, body })).json).toMatchObject({ refused: null, changed: false, body, edits: [] });
});

test("a body that would be refused is named as such", async () => {
  const body = `{${Array.from({ length: 70 }, () => '"model":"m"').join()}}`;
  expect((await explain({ path: "/v1/chat/completions", body })).json).toMatchObject({
    refused: "invalid_json",
    changed: false,
  });
});

test.each([
  [{ body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: "/api/keys", body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: "/v1/x?y", body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: `/v1/${"x".repeat(2000)}`, body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: "/v1/x", body: {} }, "body must be a string"],
])("%j gets 400", async (json, error) => {
  const response = await explain(json);
  expect([response.status, response.json]).toEqual([400, { error }]);
});
