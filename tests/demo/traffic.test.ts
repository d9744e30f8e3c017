import { describe, expect, test } from "bun:test";
import { requestsIn, type Traffic } from "../../src/demo/traffic.ts";
import { minuteOf, startOfDay } from "../../src/time/seoul.ts";

const office: Traffic = {
  requestsPerMinute: 10,
  inputTokens: 1000,
  outputTokens: 200,
  hours: "office",
  daysAgo: [30, 0],
};
const minute = (day: string, hour: number): number => minuteOf(startOfDay(day)) + hour * 60;
const hourOf = (traffic: Traffic, from: number): number => requestsIn(traffic, from, 60, 1).requestCount;
const monday = "2026-03-02";
const sunday = "2026-03-01";

describe("requestsIn", () => {
  test("follows the working hours in Seoul and is lower at the weekend", () => {
    expect(hourOf(office, minute(monday, 10))).toBeGreaterThan(10 * hourOf(office, minute(monday, 3)));
    expect(hourOf(office, minute(monday, 10))).toBeGreaterThan(2 * hourOf(office, minute(sunday, 10)));
    const nightly: Traffic = { ...office, hours: "night" };
    expect(hourOf(nightly, minute(monday, 2))).toBeGreaterThan(10 * hourOf(nightly, minute(monday, 12)));
  });

  test("returns whole requests and a plausible number of tokens", () => {
    for (let from = minute(monday, 0); from < minute(monday, 24); from++) {
      const { requestCount, inputTokens, outputTokens } = requestsIn(office, from, 1, 0);
      expect(Number.isInteger(requestCount) && Number.isInteger(inputTokens)).toBeTrue();
      expect(inputTokens).toBeWithin(requestCount * 750, requestCount * 1250 + 1);
      expect(outputTokens).toBeWithin(requestCount * 150, requestCount * 250 + 1);
    }
  });
});
