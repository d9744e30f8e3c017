import { expect, test } from "bun:test";
import { findThings, type Things } from "../../../console/src/operator/find-things.ts";

const nothing: Things = { keys: [], teams: [], users: [], backends: [], requestId: undefined };
const things: Things = {
  keys: [
    { id: 1, name: "Open WebUI", key: "sk-a…wxyz", owner: null, note: null, tags: [] },
    { id: 2, name: "billing", key: "sk-b…abcd", owner: "Kim", note: null, tags: ["red"] },
  ],
  teams: [{ id: 3, name: "Red" }],
  users: [],
  backends: [
    { name: "gpu-a", models: ["qwen3", "open-embed"] },
    { name: "gpu-b", models: ["qwen3"] },
  ],
  requestId: undefined,
};

test.each([
  ["webui", ["API key Open WebUI /keys/1"]],
  ["WXYZ", ["API key Open WebUI /keys/1"]],
  ["sk-bmiddleabcd", ["API key billing /keys/2"]],
  ["red", ["API key billing /keys/2", "Team Red /keys/teams/3"]],
  ["open", ["API key Open WebUI /keys/1", "Model open-embed /requests?model=open-embed"]],
  ["qwen", ["Model qwen3 /requests?model=qwen3"]],
  [" gpu-B ", ["Backend gpu-b /backends"]],
  ["nobody", []],
  ["  ", []],
])("%p finds %j", (text, found) => {
  expect(findThings(text, things).map(({ kind, label, href }) => `${kind} ${label} ${href}`)).toEqual(found);
});

test("a request that the log has comes first, and opens", () => {
  expect(findThings("a b&c", { ...nothing, requestId: "a b&c" })).toEqual([
    { kind: "Request", label: "a b&c", href: "/requests?open=a+b%26c" },
  ]);
});

test("at most five of a kind are listed", () => {
  const teams = Array.from({ length: 9 }, (_, id) => ({ id, name: `team ${id}` }));
  expect(findThings("team", { ...nothing, teams })).toHaveLength(5);
});
