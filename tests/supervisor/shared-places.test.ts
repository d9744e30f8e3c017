import { expect, test } from "bun:test";
import { type Entry, isChoice, type ListedRequest, type Place } from "../../src/domain/admissions.ts";
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
  const entered: Place[] = [];
  const enter = async () => {
    const place = places.enter(request, listener);
    entered.push(place);
    return place.entry;
  };
  const backendOf = (entry: Entry) => (isChoice(entry) ? entry.backend : entry);
  return {
    ...methods,
    /** The one that entered as the `number`th, as which its parent knows it. */
    leave: (number: number) => entered[number - 1]?.leave(),
    granted,
    enter: async () => backendOf(await enter()),
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
  const first = enter();
  await reply();
  const own = [await first, await enter(), await enter(), await enter()];
  expect(own.filter((backend) => backend === "a")).toHaveLength(2);
  expect(own.filter((backend) => backend === "b")).toHaveLength(2);
  await reply({ backend: "a", reason: "load" });
  const next = enter();
  await reply({ backend: "b", reason: "load" });
  expect(await next).toBe("b");
});

test("a place that the parent grants too late counts nowhere", async () => {
  const { enter, reply, placeGranted, granted, leave } = start();
  const first = enter();
  await reply();
  const [one, other] = (await first) === "a" ? ["a", "b"] : ["b", "a"];
  placeGranted(1, { backend: other, reason: "load" });
  expect(granted).toEqual([]);
  // It is where it went by itself.
  expect(await enter()).toBe(other);
  leave(1);
  placeGranted(1, { backend: one, reason: "load" });
  expect(await enter()).toBe(one);
});

test("a request that leaves before the parent replies counts nowhere", async () => {
  const { enter, reply, leave } = start();
  const left = enter();
  leave(1);
  await reply({ backend: "a", reason: "load" });
  await left;
  const first = enter();
  await reply();
  const own = [await first, await enter()];
  expect(new Set(own)).toEqual(new Set(["a", "b"]));
  // Each has one: the next goes where the first one went.
  expect(await enter()).toBe(own[0] ?? "");
});

test("a request that waits gets the place that the parent grants it", async () => {
  const { enter, reply, placeGranted, granted } = start();
  const first = enter();
  await reply("waiting");
  expect(await first).toBe("waiting");
  placeGranted(1, { backend: "b", reason: "load" });
  expect(granted).toEqual(["b"]);
});
