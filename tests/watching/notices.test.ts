import { describe, expect, test } from "bun:test";
import { noticeOf, planNotices } from "../../src/watching/notices.ts";
import { type ListedState, mergeStates, notSilenced } from "../../src/watching/states.ts";

const now = Date.UTC(2026, 10, 29, 12);
const [second, minute] = [1000, 60_000];

function listed(given: Partial<ListedState>) {
  const one = { kind: "disk", process: "a/1", object: "", since: now - 60 * second, until: null, told: 0 };
  return { ...one, what: "1 GB free", count: null, ...notSilenced, ...given };
}
const plan = (rows: ReturnType<typeof listed>[], latest: [string, number][] = []) =>
  planNotices(mergeStates(rows, now), new Map(latest), now).map(({ text }) => text);
const out = (object: string, given: Partial<ListedState> = {}) =>
  listed({ kind: "backend_out", object, what: `${object} does not respond`, ...given });

describe("what is told", () => {
  test("is a state that has stood for a minute, was not told, and is not silenced", () => {
    const [text] = plan([listed({})]);
    expect(text).toStartWith("1 GB free. Make room on the disk");
    expect(plan([listed({ since: now - 59 * second })])).toEqual([]);
    expect(plan([listed({ told: 1 })])).toEqual([]);
    expect(plan([listed({ silencedUntil: now + 1 })])).toEqual([]);
    expect(plan([listed({ silencedUntil: now - 1 })])).toHaveLength(1);
  });

  test("is the end of what was told, and of nothing else", () => {
    expect(plan([listed({ until: now - second })])).toEqual([]);
    expect(plan([listed({ until: now - second, told: 1 })])).toEqual(["Over: 1 GB free"]);
    expect(plan([listed({ until: now - second, told: 2 })])).toEqual([]);
  });

  test("is one of a kind in ten minutes, with how many there are", () => {
    expect(plan([out("a"), out("b"), out("c"), listed({})]).map((text) => text.split(".")[0])).toEqual([
      "a does not respond (and 2 more)",
      "1 GB free",
    ]);
    expect(plan([out("a")], [["backend_out", now - 10 * minute + 1]])).toEqual([]);
    expect(plan([out("a")], [["backend_out", now - 10 * minute]])).toHaveLength(1);
    expect(plan([out("a")], [["disk", now]])).toHaveLength(1);
  });

  test("is one state where several processes see it, though one of them saw it later", () => {
    const [first, later] = [listed({ told: 1 }), listed({ process: "a/2", since: now - 50 * second })];
    expect(plan([first, later])).toEqual([]);
    expect(plan([{ ...first, until: now - 5 }, later])).toEqual([]);
    expect(
      plan([
        { ...first, until: now - 5 },
        { ...later, until: now - 4 },
      ]),
    ).toEqual(["Over: 1 GB free"]);
  });

  test("has ten states at most", () => {
    const rows = Array.from({ length: 30 }, (_, index) => out(`b${index}`));
    const { states } = mergeStates(rows, now);
    const notice = noticeOf("backend_out", states);
    expect([notice.states.length, notice.text.split(".")[0]]).toEqual([10, "b0 does not respond (and 29 more)"]);
  });
});
