import { expect, test } from "bun:test";
import type { Entry, ListedRequest } from "../../src/domain/admissions.ts";
import { noConversation } from "../../src/domain/backends.ts";
import { createSharedPlaces } from "../../src/supervisor/shared-places.ts";
import { passTicks } from "../support/event-loop.ts";

const request: ListedRequest = {
  keyId: 1,
  waits: true,
  model: "m",
  candidates: ["a", "b"],
  characters: 0,
  conversation: noConversation,
  tried: [],
};

function start() {
  const replies: PromiseWithResolvers<Entry>[] = [];
  const call = (...[name]: unknown[]): Promise<never> => {
    if (name !== "enterQueue") return new Promise(() => {});
    const reply = Promise.withResolvers<Entry>();
    replies.push(reply);
    return reply.promise as Promise<never>;
  };
  const { places, methods } = createSharedPlaces({ call });
  const granted: string[] = [];
  const listener = { onGranted: ({ backend }: { backend: string }) => void granted.push(backend), onDisplaced() {} };
  const enter = async (ticket: number) => places.enter(ticket, request, listener);
  const backendOf = (entry: Entry): string => (typeof entry === "object" ? entry.backend : entry);
  return {
    ...methods,
    leave: places.leave,
    granted,
    enter: async (ticket: number) => backendOf(await enter(ticket)),
    /** The parent's reply to the request that came last; undefined: none came in time. */
    async reply(entry?: Entry) {
      const last = replies.pop();
      if (entry === undefined) last?.reject(new Error("no reply"));
      else last?.resolve(entry);
      await passTicks();
    },
  };
}

test("a parent that did not reply in time is not waited for again until it replies", async () => {
  const { enter, reply } = start();
  const first = enter(1);
  await reply();
  const own = [await first, await enter(2), await enter(3), await enter(4)];
  expect(own.filter((backend) => backend === "a")).toHaveLength(2);
  expect(own.filter((backend) => backend === "b")).toHaveLength(2);
  await reply({ backend: "a", reason: "load" });
  const next = enter(5);
  await reply({ backend: "b", reason: "load" });
  expect(await next).toBe("b");
});

test("a place that the parent grants too late counts nowhere", async () => {
  const { enter, reply, placeGranted, granted, leave } = start();
  const first = enter(1);
  await reply();
  const [one, other] = (await first) === "a" ? ["a", "b"] : ["b", "a"];
  placeGranted(1, { backend: other, reason: "load" });
  expect(granted).toEqual([]);
  // It is where it went by itself.
  expect(await enter(2)).toBe(other);
  leave(1);
  placeGranted(1, { backend: one, reason: "load" });
  expect(await enter(3)).toBe(one);
});

test("a request that leaves before the parent replies counts nowhere", async () => {
  const { enter, reply, leave } = start();
  const left = enter(1);
  leave(1);
  await reply({ backend: "a", reason: "load" });
  await left;
  const first = enter(2);
  await reply();
  const own = [await first, await enter(3)];
  expect(own.toSorted()).toEqual(["a", "b"]);
  // Each has one: the next goes where the first one went.
  expect(await enter(4)).toBe(own[0] ?? "");
});

test("a request that waits gets the place that the parent grants it", async () => {
  const { enter, reply, placeGranted, granted } = start();
  const first = enter(1);
  await reply("waiting");
  expect(await first).toBe("waiting");
  placeGranted(1, { backend: "b", reason: "load" });
  expect(granted).toEqual(["b"]);
});
