import { Glob } from "bun";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startAdmin } from "../admin/support/admin-server.ts";
import { shared } from "../support/shared.ts";

/** One word for one idea, in what the console and the description of the API say: what is not said, and what is instead. */
const words: readonly (readonly [not: RegExp, instead: string])[] = [
  [/\b(cached|cache hits?|hit rate)\b/i, "from cache"],
  [/\b(queued?|queues|queueing|enqueued)\b/i, "waited, waits"],
  [/\b(reject(s|ed|ing)?|throttled?|rate[- ]limit\w*|denied)\b/i, "refused, by its limit"],
  [/\b(drain(s|ed|ing)?|cordon\w*|maintenance mode)\b/i, "taken out"],
  [/\b(unhealthy|offline|backend is down)\b/i, "out"],
  [/\b((de)?activated?|(de)?activating|disabled?|enabled?)\b/i, "switched on, switched off"],
  [/\b(prompt tokens|uncached|fresh input)\b/i, "input, of which from cache"],
  [/\b(completion tokens|generated tokens)\b/i, "output"],
  [/\b(api[- ]tokens? of (a )?key|secret key)\b/i, "API key; its secret"],
  [/\b(quota|budget)\b/i, "limit"],
];

const notSaid = (texts: Iterable<string>): string[] =>
  [...texts].flatMap((text) =>
    words.flatMap(([not, instead]) => (not.test(text) ? [`“${not.exec(text)?.[0]}”: ${instead} | ${text}`] : [])),
  );

/** Names of the API, of settings and in code are no words. */
const withoutNames = (text: string): string =>
  text.replaceAll(/`[^`]*`|\$\{[^}]*\}|\b\w*[_/]\w*\b|^[a-z][\w-]*$/g, " ");

/** What stands in quotes, and lines of text between tags. */
function textsOf(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^(?:import|} from)[^;]*;$/gm, "");
  const quoted = [...code.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map(([, a, b]) => a ?? b ?? "");
  const lines = code.split("\n").map((line) => line.replaceAll(/<[^<>]*>|\{[^{}]*\}/g, " ").trim());
  return [
    ...quoted,
    ...lines.filter((line) => /^[^=(){}[\]<>`"]*$/.test(line) && line.includes(" ") && !/^\w+\??: /.test(line)),
  ].map(withoutNames);
}

describe("one word for one idea", () => {
  const admin = shared(() => startAdmin());

  test.each([
    ["9 tokens were cached", 1],
    ["Of which from cache", 0],
    ["The request was queued and then rejected", 2],
    ["cached_input_tokens", 0],
  ])("%s", (text, faults) => {
    expect(notSaid([withoutNames(text)])).toHaveLength(faults);
  });

  test("in the console", async () => {
    const root = join(import.meta.dir, "../../console/src");
    // Lines of clients have their words.
    const files = [...new Glob("**/*.{ts,tsx}").scanSync(root)].filter(
      (file) => !/agent-settings|quick-start-l/.test(file),
    );
    expect(files.length).toBeGreaterThan(150);
    const texts = await Promise.all(files.map(async (file) => textsOf(await Bun.file(join(root, file)).text())));
    expect(texts.flat()).toContain("Input includes what came from a cache, as far as backends report it.");
    expect(notSaid(texts.flat())).toEqual([]);
  });

  test("in the description of the API", async () => {
    const document = await admin.send("GET", "/api/openapi.json", { as: await admin.login() });
    const texts: string[] = [];
    JSON.stringify(document.json, (name, value: unknown) => {
      if ((name === "description" || name === "summary") && typeof value === "string") texts.push(value);
      return value;
    });
    expect(texts.length).toBeGreaterThan(100);
    expect(notSaid(texts.map(withoutNames))).toEqual([]);
  });
});
