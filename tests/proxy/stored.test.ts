import { expect, test } from "bun:test";
import { createLog } from "../../src/log/log.ts";
import { createRoom, createStoredIds, findStoredPath, namesIn, type StoredDeps } from "../../src/proxy/stored.ts";
import type { UpstreamResponse } from "../../src/proxy/upstream/forward.ts";
import { backendOf } from "../support/catalog.ts";
import { passTicks } from "../support/event-loop.ts";
import { createRandom } from "../support/random.ts";

const dayMs = 86_400_000;
const entries: string[] = [];
const log = createLog({ level: "debug", format: "json", clock: () => 0, write: (line) => void entries.push(line) });

function depsWith(deps: Partial<StoredDeps> = {}) {
  const noted: unknown[] = [];
  return {
    noted,
    findOwners: async (ids: readonly string[]) => ids.map(() => undefined),
    countOwned: async () => 0,
    record: async (event: { owned?: unknown }) => {
      noted.push(event.owned);
      return { inputTokens: 0, outputTokens: 0 };
    },
    wall: () => 0,
    log,
    ...deps,
  };
}

const backends = [backendOf("a"), backendOf("b")];
const find = (count: number, deps: StoredDeps, path = "/v1/batches") => {
  const body = Buffer.from(JSON.stringify({ file_ids: Array.from({ length: count }, (_, n) => `file-${n}`) }));
  const asked = { keyId: 1, method: "POST", path, body, keeps: true };
  return createStoredIds(deps).find(asked, backends, async () => {});
};

test("however much a request names, it is looked up in one query", async () => {
  const asked: number[] = [];
  const findOwners = async (ids: readonly string[]) => (asked.push(ids.length), ids.map(() => undefined));
  expect(await find(1000, depsWith({ findOwners }))).toMatchObject({ backend: undefined });
  expect(asked).toEqual([1000]);
});

test("what cannot be looked up is not shown, and the log tells why", async () => {
  const findOwners = async () => {
    throw new Error("the disk is on fire");
  };
  const found = find(1, depsWith({ findOwners }));
  expect(await found.catch(({ code }: { code: unknown }) => code)).toBe("storage_unavailable");
  expect(entries.join()).toContain("the disk is on fire");
});

test("what is used is noted once it was not for a day, and a path counts for more than a body", async () => {
  const owners = [
    { keyId: 1, backend: "a", usedAt: 0 },
    { keyId: 1, backend: "b", usedAt: 1 },
  ];
  const deps = depsWith({ findOwners: async () => owners, wall: () => dayMs });
  expect(await find(1, deps, "/v1/responses/resp_1/cancel")).toMatchObject({ backend: "b", isOwnPath: true });
  expect(deps.noted).toEqual([{ ids: ["files/file-0"], backend: "a" }]);
});

test("the bytes that complete the first event with an id wait until that is noted, and none before", async () => {
  const noted = Promise.withResolvers<never>();
  const events: unknown[] = [];
  const record: StoredDeps["record"] = ({ owned }) => (events.push(owned), noted.promise);
  const ids = createStoredIds(depsWith({ record }));
  const asked = { keyId: 1, method: "POST", path: "/v1/responses", body: undefined, keeps: true };
  const found = await ids.find(asked, backends, async () => {});
  const parts = [": wait\n\n", 'data: {"type":"error"}\n\ndata: {"response":', '{"id":"resp_1"}}\n\n', "data: {}\n\n"];
  const body = new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(Buffer.from(part));
      controller.close();
    },
  });
  const response = new Response(body, { headers: { "content-type": "text/event-stream" } });
  const { upstream, created } = await ids.announce({ response } as UpstreamResponse, found, "a");
  const reader = (upstream.response.body as ReadableStream<Uint8Array>).getReader();
  const next = async () => Buffer.from((await reader.read()).value ?? []).toString();
  expect([await next(), await next(), created?.()]).toEqual([...parts.slice(0, 2), undefined]);
  const third = next();
  expect(await Promise.race([third, passTicks(5)])).toBeUndefined();
  expect([events, created?.()]).toEqual([[{ ids: ["resp_1"], backend: "a" }], "resp_1"]);
  noted.resolve();
  expect([await third, await next(), events.length]).toEqual([...parts.slice(2), 1]);
});

test("a key that has a million ids creates no more, counted once a minute; without the database it goes on", async () => {
  let [now, counted, owned] = [0, 0, 999_998];
  const countOwned = async () => ((counted += 1), owned);
  const requireRoom = createRoom({ countOwned, wall: () => now });
  const outcome = () =>
    requireRoom(1).then(
      () => "created",
      ({ code }: { code: unknown }) => code,
    );
  expect(await Promise.all([outcome(), outcome(), outcome()])).toEqual(["created", "created", "too_many_stored"]);
  now = 59_999;
  owned = 0;
  expect([await outcome(), counted]).toEqual(["too_many_stored", 1]);
  now = 60_000;
  expect([await outcome(), counted]).toEqual(["created", 2]);
  const broken = createRoom({ countOwned: () => Promise.reject(new Error("away")), wall: () => now });
  expect(await broken(1)).toBeUndefined();
});

test.each<[method: string, path: string, id: string | undefined, isCreate?: boolean]>([
  ["GET", "/v1/responses/resp_1", "resp_1"],
  ["HEAD", "/v1/responses/resp_1", "resp_1"],
  ["DELETE", "/v1/responses/resp_1/", "resp_1"],
  ["GET", "/v1/responses/%zz", "%zz"],
  ["GET", "/v1/responses/resp_1/input_items/more", "resp_1"],
  ["POST", "/v1/responses/resp_1%2Fcancel", "resp_1"],
  ["POST", "/v1/responses/compact", undefined, true],
  ["POST", "/v1/responses/input_tokens", undefined],
  ["POST", "/v1/responses/", undefined, true],
  ["GET", "/v1/responses", undefined],
  ["POST", "/v1//files", undefined, true],
  ["POST", "/v1/files/file-1", "file-1"],
  ["GET", "/v1/messages/batches/msgbatch_1/results", "msgbatch_1"],
  ["POST", "/v1/messages/batches", undefined, true],
])("%s %s is for the id %p", (method, path, id, isCreate = false) => {
  expect(findStoredPath(method, path)).toMatchObject({ id, isCreate });
});

test.each([
  "/v1/responses2/resp_1",
  "/v1/chat/completions/chat_1",
  "/v1/messages/count_tokens",
  "/v1/vector_stores/vs_1",
])("nothing stored is under %s", (path) => expect(findStoredPath("GET", path)).toBeUndefined());

test("names are found at any depth, wherever the blocks that a body is read in are cut", async () => {
  const random = createRandom(7);
  const members = ["file_id", "FILE_IDS", "previous_response_id", "a", "type", '"file_id":', "training_file"];
  const textOf = (): string =>
    random.pick(["x", "", "file_id", '":', "\\", '"', "é".repeat(random.below(5000)), `file-${random.below(99)}`]);
  const valueOf = (depth: number): unknown => {
    const kind = random.below(depth > 12 ? 3 : 6);
    if (kind < 2) return textOf();
    if (kind === 2) return random.pick([1, null, true, -1.5e3]);
    const parts = Array.from({ length: random.below(6) }, () => valueOf(depth + 1));
    return kind === 3 ? parts : Object.fromEntries(parts.map((part) => [random.pick(members), part]));
  };
  const files = new Set(["file_id", "file_ids", "training_file"]);
  const prefixOf = (name: string): string | undefined =>
    files.has(name) ? "files/" : name === "previous_response_id" ? "" : undefined;
  /** A list of ids ends with the first element that is a list or an object. */
  const idsIn = (value: unknown, prefix?: string): string[] => {
    if (typeof value === "string")
      return prefix === undefined || value === "" || value.length > 512 ? [] : [prefix + value];
    if (typeof value !== "object" || value === null) return [];
    if (!Array.isArray(value)) {
      return Object.entries(value).flatMap(([name, part]) => idsIn(part, prefixOf(name.toLowerCase())));
    }
    const end = value.findIndex((part) => typeof part === "object" && part !== null);
    return value.flatMap((part: unknown, at) =>
      idsIn(part, end === -1 || at < end || (at === end && Array.isArray(part)) ? prefix : undefined),
    );
  };
  for (let round = 0; round < 300; round++) {
    const value = { a: valueOf(0), b: valueOf(0), c: valueOf(0) };
    const body = Buffer.from(JSON.stringify(value, undefined, random.below(2) * 3));
    const names = await namesIn({ keyId: 1, method: "POST", path: "/v1/batches", body });
    expect(new Set(names.map(({ id }) => id))).toEqual(new Set(idsIn(value)));
  }
});

test("a long body is read in portions, and holds up no one", async () => {
  const body = Buffer.from(JSON.stringify({ input: "x".repeat(3_000_000), "": [1, "2"], file_id: "file-1" }));
  const names = namesIn({ keyId: 1, method: "POST", path: "/v1/batches", body });
  expect(names).toBeInstanceOf(Promise);
  expect(await names).toEqual([{ id: "files/file-1", member: "file_id" }]);
});
