import { expect, test } from "bun:test";
import { pollBackends } from "../../src/telemetry/poll-backend-counters.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";

test("each backend of the catalog is polled, and a change of the file changes only what it is about", () => {
  const [a, b] = [backendOf("gpu-a"), backendOf("gpu-b")];
  const catalog = replaceableCatalog(fileCatalog([a, b], []));
  const events: string[] = [];
  const stop = pollBackends(catalog, ({ name, baseUrl }) => {
    events.push(`polls ${name} at ${baseUrl}`);
    return () => void events.push(`leaves ${name} at ${baseUrl}`);
  });
  const since = (): string[] => events.splice(0);
  expect(since()).toEqual(["polls gpu-a at http://gpu-a.example", "polls gpu-b at http://gpu-b.example"]);
  catalog.replace(fileCatalog([{ ...a, maxConcurrency: 3 }, b, backendOf("gpu-c")], []));
  expect(since()).toEqual(["polls gpu-c at http://gpu-c.example"]);
  catalog.replace(fileCatalog([{ ...a, baseUrl: "http://moved.example" }, backendOf("gpu-c")], []));
  expect(since()).toEqual([
    "leaves gpu-a at http://gpu-a.example",
    "leaves gpu-b at http://gpu-b.example",
    "polls gpu-a at http://moved.example",
  ]);
  stop();
  expect(since().toSorted()).toEqual(["leaves gpu-a at http://moved.example", "leaves gpu-c at http://gpu-c.example"]);
  catalog.replace(fileCatalog([b], []));
  expect(since()).toEqual([]);
});
