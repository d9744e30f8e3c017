import { describe, expect, test } from "bun:test";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { respondWithModels } from "../../../src/proxy/response/catalog-list.ts";
import type { ModelEntry } from "../../../src/proxy/response/model-entry.ts";
import { createModelNames } from "../../../src/proxy/rewrite/model-names.ts";
import type { Catalog, DiscoveredModel, Model } from "../../../src/domain/models.ts";
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
const entries: Record<string, object> = {
  "gpu-b Org/Coder": { id: "Org/Coder", n: 1, created: 1_700_000_000, max_output_tokens: 5, root: "/mnt/coder" },
  "attic found": { id: "found", max_model_len: 8192, display_name: "Found" },
};
const found: DiscoveredModel = { name: "found", backends: ["attic"] };
const discovered = { find: () => undefined, list: () => [found] };
const backendModels = {
  findEntry: (names: readonly string[], servedAs: string) =>
    names
      .flatMap((name) => (entries[`${name} ${servedAs}`] as ModelEntry | undefined) ?? ([] as ModelEntry[]))
      .at(0) as ModelEntry | undefined,
};

interface Asked {
  path?: string;
  method?: string;
  headers?: Record<string, string>;
  fields?: Partial<Catalog>;
  isAllowed?: (name: string) => boolean;
}

const wall = () => 1_790_000_000_500;

function ask({ path = "/v1/models", method = "GET", headers = {}, fields, isAllowed = () => true }: Asked) {
  const names = createModelNames(fileCatalog(backends, [coder, embedder], fields), discovered);
  const request = { method, headers: new Headers(headers) };
  return respondWithModels({ request, path, isAllowed, wall }, names, backendModels);
}

async function read(asked: Asked): Promise<string> {
  try {
    return (await ask(asked)?.text()) ?? "not ours";
  } catch (error) {
    return error instanceof ProxyError ? `${error.code} ${error.details?.message ?? ""}`.trim() : String(error);
  }
}

const noModel = (name: string): string =>
  `model_not_found There is no model "${name}"; there are: coder, org/bge, found.`;
const limits = (context: number, output: number): string => `"context_length":${context},"max_output_tokens":${output}`;
const coderAs = (id: string): string =>
  `{"id":"${id}","n":1,"created":1700000000,"max_output_tokens":32768,"context_length":262144}`;
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
    ["/v1/models/tiny", coderAs("tiny")],
    ["/v1/models/TINY", coderAs("tiny")],
    ["/v1/models/claude-x", noModel("claude-x")],
    ["/v1//models/coder", coderAs("coder")],
    ["/v1/models//coder", noModel("/coder")],
    ["/v1/models/coder/", noModel("coder/")],
    ["/v1/models/Org/Coder", noModel("Org/Coder")],
    ["/v1/models/%zz", noModel("%zz")],
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

test.each<Asked>([{ method: "POST" }, { method: "DELETE", path: "/v1/models/coder" }])(
  "%p is the backend's to answer",
  async (asked) => {
    expect(await read(asked)).toBe("not ours");
  },
);

test.each<[says: string, file: Partial<Model>, entries: (object | undefined)[], listed: object]>([
  ["the file's context", { contextTokens: 100 }, [{ max_model_len: 200 }], { context_length: 100 }],
  ["vLLM's", {}, [{ max_model_len: 200 }], { context_length: 200 }],
  ["llama.cpp's", {}, [{ meta: { n_ctx: 300, n_ctx_train: 9 } }], { context_length: 300 }],
  ["the smallest", {}, [{ context_length: 500, max_model_len: 400 }, { max_model_len: 350 }], { context_length: 350 }],
  ["no impossible one", {}, [{ max_model_len: 0, meta: null }], { context_length: 202_752 }],
  ["what the file embeds", { kind: "embedding" }, [undefined], { kind: "embedding", max_output_tokens: undefined }],
  ["what the engine embeds", {}, [{ type: "embeddings", max_output_tokens: 9 }], { kind: "embedding" }],
  ["what has that task", {}, [{ capabilities: ["embed"] }], { kind: "embedding", max_output_tokens: undefined }],
  ["what also chats", {}, [{ capabilities: ["completion", "embedding"] }], { max_output_tokens: 16_384 }],
  ["an engine's other kind", {}, [{ kind: "HF_BASE_MODEL" }], { kind: "HF_BASE_MODEL", max_output_tokens: 16_384 }],
  ["no file of a host", {}, [{ root: "/models/q3", parent: "/b", path: "/c" }], { root: undefined, parent: undefined }],
])("a list says %s", (_, file, given, expected) => {
  const names = createModelNames(fileCatalog(backends, [modelOf("one", ["gpu-a", "gpu-b"], file)]));
  const findEntry = ([name]: readonly string[]) =>
    given[["gpu-a", "gpu-b"].indexOf(name ?? "")] as ModelEntry | undefined;
  const request = { method: "GET", headers: new Headers() };
  const rest = { path: "/v1/models/one", isAllowed: () => true, wall };
  const response = respondWithModels({ request, ...rest }, names, { findEntry });
  return response?.json().then((listed) => {
    expect(listed).toMatchObject(
      Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)),
    );
    for (const [name, value] of Object.entries(expected))
      if (value === undefined) expect(listed).not.toHaveProperty(name);
  });
});
