import { expect, test } from "bun:test";
import type { LoggedRequest } from "../../../src/store/requests/contract.ts";
import { createNews, seenOf } from "../../../src/admin/requests/news.ts";

const row = (id: number, durationMs = 1): LoggedRequest => ({ id, durationMs }) as LoggedRequest;
const tailOf = (...requests: LoggedRequest[]) => ({ requests, leftOut: 0, lastId: requests.at(-1)?.id ?? 0 });
const idsOf = (news: ReturnType<typeof createNews>, ...requests: LoggedRequest[]) =>
  news.of(tailOf(...requests)).rows.map(({ id }) => id);

test("a row that becomes visible late is news, and so is one that was corrected", () => {
  const news = createNews({ from: 5, seen: [] });
  expect(idsOf(news, row(6), row(8))).toEqual([6, 8]);
  expect(idsOf(news, row(6), row(7), row(8))).toEqual([7]);
  expect(idsOf(news, row(6), row(7, 804), row(8))).toEqual([7]);
});

test("news go on after an event, with what became visible late", () => {
  const news = createNews({ from: 5, seen: [] });
  idsOf(news, row(6), row(8));
  const place = seenOf(news.eventId());
  expect(place).toEqual({ from: 5, seen: [6, 8] });
  expect(idsOf(createNews(place ?? { from: 0, seen: [] }), row(6), row(7), row(8), row(9))).toEqual([7, 9]);
});

test("the id of an event stays short, however much came", () => {
  const news = createNews({ from: 5, seen: [] });
  idsOf(news, ...Array.from({ length: 2000 }, (_, n) => row(6 + n)));
  expect(news.eventId()).toBe("2005");
});
