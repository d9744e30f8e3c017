import { describe, expect, spyOn, test } from "bun:test";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { respondWithModels } from "../../../src/proxy/response/catalog-list.ts";
import { createModelNames } from "../../../src/proxy/rewrite/model-names.ts";
import type { Catalog, DiscoveredModel } from "../../../src/domain/models.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";

const coder = modelOf("coder", ["gpu-a", "gpu-b"], {
  servedAs: "Org/Coder",
  aliases: ["claude-*", "tiny"],
  reasoning: true,
  contextTokens: 262_144,
  maxOutputTokens: 32_768,
});
const embedder = modelOf("org/bge", ["gpu-b"]);
const backends = [backendOf("gpu-a"), backendOf("gpu-b"), backendOf("attic", { discover: true })];
const entries: Record<string, string> = {
  "gpu-b Org/Coder": '{ "id":"Org/Coder" , "n":1.0,"created":1700000000,"max_output_tokens":5,"id":"again" }',
  "attic found": '{"id":"found","max_model_len":8192,"display_name":"Found"}',
};
const found: DiscoveredModel = { name: "found", backends: ["attic"] };
const discovered = { find: () => undefined, list: () => [found] };
const backendModels = {
  findEntry: (names: readonly string[], servedAs: string) =>
    names.flatMap((name) => entries[`${name} ${servedAs}`] ?? []).at(0),
};

interface Asked {
  path?: string;
  method?: string;
  headers?: Record<string, string>;
  fields?: Partial<Catalog>;
  isAllowed?: (name: string) => boolean;
}

const wall = () => 1_790_000_000_500;
const modelNotFound = (_: string, listed: readonly string[]): ProxyError =>
  new ProxyError("model_not_found", { message: listed.join() });

function ask({ path = "/v1/models", method = "GET", headers = {}, fields, isAllowed = () => true }: Asked) {
  const names = createModelNames(fileCatalog(backends, [coder, embedder], fields), discovered);
  const request = { method, headers: new Headers(headers) };
  return respondWithModels({ request, path, isAllowed, modelNotFound, wall }, names, { backendModels });
}

async function read(asked: Asked): Promise<string> {
  try {
    return (await ask(asked)?.text()) ?? "not ours";
  } catch (error) {
    return error instanceof ProxyError ? `${error.code} ${error.details?.message ?? ""}`.trim() : String(error);
  }
}

const limits = (context: number, output: number): string => `"context_length":${context},"max_output_tokens":${output}`;
const coderAs = (id: string): string =>
  `{ "id":"${id}" , "n":1.0,"created":1700000000,"max_output_tokens":32768,"id":"${id}","context_length":262144 }`;
const bge = `{"id":"org/bge","object":"model","created":1790000000,"owned_by":"tollgate",${limits(202_752, 16_384)}}`;
const foundEntry = `{"id":"found","max_model_len":8192,"display_name":"Found",${limits(8192, 16_384)}}`;
const whole = `{"object":"list","data":[${[coderAs("coder"), coderAs("coder-nonthinking"), bge, foundEntry].join()}]}`;

describe("the list", () => {
  test("has the file's models in its order as their backends list them, then those that backends found", async () => {
    expect(await read({})).toBe(whole);
    expect(await read({ path: "/v1//models/" })).toBe(whole);
    expect(ask({ method: "HEAD" })?.status).toBe(200);
  });

  test("has exact aliases, if the file says so", async () => {
    const list = await read({ fields: { listAliases: true } });
    expect((JSON.parse(list) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual([
      "coder",
      "coder-nonthinking",
      "tiny",
      "org/bge",
      "found",
    ]);
  });

  test("has Anthropic's shape for its clients", async () => {
    const list = JSON.parse(await read({ headers: { "anthropic-version": "2023-06-01" } })) as { data: unknown[] };
    expect(list).toMatchObject({ has_more: false, first_id: "coder", last_id: "found" });
    const coderTime = { created_at: "2023-11-14T22:13:20.000Z", context_length: 262_144, max_output_tokens: 32_768 };
    const ownTime = { created_at: "2026-09-21T14:13:20.000Z", max_output_tokens: 16_384 };
    expect(list.data).toEqual([
      { type: "model", id: "coder", display_name: "coder", ...coderTime },
      { type: "model", id: "coder-nonthinking", display_name: "coder-nonthinking", ...coderTime },
      { type: "model", id: "org/bge", display_name: "org/bge", ...ownTime, context_length: 202_752 },
      { type: "model", id: "found", display_name: "Found", ...ownTime, context_length: 8192 },
    ]);
  });

  test("is made of entries that are read once", async () => {
    const listed = Array.from({ length: 100 }, (_, n) => ({ name: `many-${n}`, backends: ["attic"] }));
    const names = createModelNames(fileCatalog(backends, [coder]), { find: () => undefined, list: () => listed });
    const findEntry = (_: readonly string[], servedAs: string) => `{"id":"${servedAs}","max_model_len":4096}`;
    using reads = spyOn(Buffer, "from");
    const list = (): Promise<string> | undefined => {
      const request = { method: "GET", headers: new Headers() };
      const rest = { path: "/v1/models", isAllowed: () => true, modelNotFound, wall };
      return respondWithModels({ request, ...rest }, names, { backendModels: { findEntry } })?.text();
    };
    const first = await list();
    expect(reads.mock.calls.length).toBeGreaterThan(100);
    reads.mockClear();
    expect(await list()).toBe(first);
    expect(reads).not.toHaveBeenCalled();
  });

  test("has what a key may use, by any of a model's names", async () => {
    expect(await read({ isAllowed: (name) => name === "coder" })).toBe(
      `{"object":"list","data":[${[coderAs("coder"), coderAs("coder-nonthinking")].join()}]}`,
    );
    expect(await read({ isAllowed: () => false })).toBe('{"object":"list","data":[]}');
  });
});

describe("one model", () => {
  test.each<[path: string, expected: string]>([
    ["/v1/models/coder", coderAs("coder")],
    ["/v1/models/CODER-nonthinking", coderAs("coder-nonthinking")],
    ["/v1/models/org/bge", bge],
    ["/v1/models/org%2Fbge", bge],
    ["/v1/models/found", foundEntry],
    ["/v1/models/tiny", "model_not_found coder,org/bge,found"],
    ["/v1/models/Org/Coder", "model_not_found coder,org/bge,found"],
    ["/v1/models/%zz", "model_not_found coder,org/bge,found"],
    ["/v1/modelsx", "not ours"],
    ["/v1/model", "not ours"],
  ])("at %s", async (path, expected) => {
    expect(await read({ path })).toBe(expected);
  });

  test("that a key may not use is refused, listed or not", async () => {
    const isAllowed = (name: string): boolean => name === "coder";
    expect(await read({ path: "/v1/models/coder-nonthinking", isAllowed })).toBe(coderAs("coder-nonthinking"));
    for (const name of ["found", "unknown"]) {
      expect(await read({ path: `/v1/models/${name}`, isAllowed })).toBe("model_not_allowed");
    }
  });
});

test.each<Asked>([{ method: "POST" }, { method: "DELETE", path: "/v1/models/coder" }, { fields: { file: undefined } }])(
  "%p is the backend's to answer",
  async (asked) => {
    expect(await read(asked)).toBe("not ours");
  },
);
