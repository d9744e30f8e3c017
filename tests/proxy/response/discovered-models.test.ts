import { expect, test } from "bun:test";
import type { Backend, Catalog } from "../../../src/domain/models.ts";
import { type BackendModels, createBackendModels } from "../../../src/proxy/response/discovered-models.ts";
import { backendOf, fileCatalog, modelOf, replaceableCatalog } from "../../support/catalog.ts";
import { useFakeTime } from "../../support/fake-time.ts";

const time = useFakeTime();

const listOf = (...ids: string[]): string => JSON.stringify({ data: ids.map((id) => ({ id, from: "backend" })) });

const [plain, finds, alsoFinds] = [
  backendOf("plain"),
  backendOf("finds", { discover: true }),
  backendOf("also", { discover: true }),
];
const coder = modelOf("coder", ["plain"], { servedAs: "Org/Coder", aliases: ["claude-*", "tiny"], reasoning: true });

interface Harness {
  models: BackendModels;
  current: ReturnType<typeof replaceableCatalog>;
  /** How often each backend was asked. */
  asked: Record<string, number>;
  found(): Record<string, string>;
}

/** @param lists by backend; an Error rejects, undefined is no list */
function listen(first: Catalog, lists: Record<string, string | Error | undefined>): Harness {
  const current = replaceableCatalog(first);
  const asked: Record<string, number> = {};
  const models = createBackendModels({
    catalog: current,
    async fetchList({ name }: Backend) {
      asked[name] = (asked[name] ?? 0) + 1;
      const list = lists[name];
      if (list instanceof Error) throw list;
      return list === undefined ? undefined : Buffer.from(list);
    },
    monotonic: time.now,
    onFailed() {},
    onOddName() {},
  });
  const found = () => Object.fromEntries(models.discovered.list().map(({ name, backends }) => [name, backends.join()]));
  return { models, current, asked, found };
}

test("a backend with discover adds what it lists, and no name, alias or served name of the file", async () => {
  const names = ["New", "CODER", "claude-x", "Tiny", "coder-nonthinking", "org/coder", "x/y"];
  const { models, found } = listen(fileCatalog([plain, finds, alsoFinds], [coder], { defaultModel: "coder" }), {
    plain: listOf("hidden"),
    finds: listOf(...names),
    also: listOf("New", "third", "NEW"),
  });
  await time.pass(0);
  expect(found()).toEqual({ New: "finds,also", "x/y": "finds", third: "also" });
  expect(models.discovered.find("new")?.name).toBe("New");
  expect(models.findEntry(["plain", "finds"], "hidden")).toEqual({ id: "hidden", from: "backend" });
  expect(models.findEntry(["finds"], "hidden")).toBeUndefined();
  models.stop();
});

test("backends are asked at once, every 30 s, and soon after an error; one that is out keeps its models", async () => {
  const lists: Record<string, string | Error | undefined> = { plain: listOf(), finds: listOf("one") };
  const { models, asked, found } = listen(fileCatalog([plain, finds], [coder]), lists);
  await time.pass(0);
  expect(asked).toEqual({ plain: 1, finds: 1 });
  lists["finds"] = listOf("two");
  await time.pass(29_900);
  expect(found()).toEqual({ one: "finds" });
  await time.pass(100);
  expect([found(), asked]).toEqual([{ two: "finds" }, { plain: 2, finds: 2 }]);

  lists["finds"] = listOf("three");
  models.requestEnded(200);
  models.requestEnded(429);
  await time.pass(5000);
  expect(asked["finds"]).toBe(2);
  for (let count = 0; count < 10; count += 1) models.requestEnded(404);
  await time.pass(0);
  for (let count = 0; count < 10; count += 1) models.requestEnded(502);
  expect([found(), asked]).toEqual([{ three: "finds" }, { plain: 2, finds: 3 }]);
  await time.pass(900);
  expect(asked["finds"]).toBe(3);
  lists["finds"] = new Error("refused");
  await time.pass(100);
  expect([found(), asked["finds"]]).toEqual([{ three: "finds" }, 4]);
  lists["finds"] = "not a list";
  await time.pass(1000);
  lists["finds"] = listOf("four");
  await time.pass(2000);
  expect(found()).toEqual({ four: "finds" });
  models.stop();
  await time.pass(60_000);
  expect(asked["finds"]).toBe(6);
});

test("of a list with very many or very long names, the first 2,000 of up to 200 characters are known", async () => {
  const names = ["x".repeat(201), "y".repeat(200), ...Array.from({ length: 200_000 }, (_, at) => `m${at}`)];
  const { models, found } = listen(fileCatalog([finds], []), { finds: listOf(...names) });
  await time.pass(0);
  expect(Object.keys(found())).toEqual(names.slice(1, 2000));
  models.stop();
});

test("a replaced file asks new backends only, and forgets those that are gone", async () => {
  const first = fileCatalog([plain, finds], [coder]);
  const { models, current, asked, found } = listen(first, {
    plain: listOf(),
    finds: listOf("one"),
    also: listOf("two"),
  });
  await time.pass(0);
  current.replace({ ...first, backends: [plain, finds, alsoFinds] });
  await time.pass(0);
  expect([found(), asked]).toEqual([
    { one: "finds", two: "also" },
    { plain: 1, finds: 1, also: 1 },
  ]);
  current.replace({ ...first, backends: [plain, alsoFinds, { ...finds, baseUrl: "http://moved.example" }] });
  expect(found()).toEqual({ two: "also" });
  await time.pass(0);
  expect([found(), asked]).toEqual([
    { two: "also", one: "finds" },
    { plain: 1, finds: 2, also: 1 },
  ]);
  current.replace({ ...first, models: [modelOf("ONE", ["plain"])] });
  expect(found()).toEqual({});
  models.stop();
});

test("without a file no backend is asked", async () => {
  const { models, asked } = listen(fileCatalog([finds], [], { file: undefined }), { finds: listOf("one") });
  await time.pass(60_000);
  models.requestEnded(502);
  await time.pass(60_000);
  expect(asked).toEqual({});
  models.stop();
});
