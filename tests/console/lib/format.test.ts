import { expect, test } from "bun:test";
import {
  bucketName,
  byteSize,
  compact,
  count,
  gibibytes,
  memory,
  milliseconds,
  percentChange,
  plural,
  timeAgo,
  wattHours,
  watts,
} from "../../../console/src/lib/format.ts";

test.each([
  [0, "0"],
  [7.25, "7.3"],
  [9999, "9,999"],
  [10_000, "10K"],
  [1_234_567, "1.23M"],
  [9_876_543_210, "9.88B"],
])("%p is shortened to %s", (value, text) => expect(compact(value)).toBe(text));

test("counts are grouped by thousands", () => {
  expect(count(1_234_567)).toBe("1,234,567");
  expect([plural(1, "key"), plural(2, "key"), plural(0, "key")]).toEqual(["1 key", "2 keys", "0 keys"]);
});

test.each([
  [150, 100, "+50%"],
  [50, 100, "−50%"],
  [100, 100, "±0%"],
  [1001, 1000, "±0%"],
  [5000, 1, "+499,900%"],
  [0, 10, "−100%"],
])("%p after %p is a change of %s", (now, before, text) => expect(percentChange(now, before)).toBe(text));

test("a change from 0 is undefined", () => expect(percentChange(10, 0)).toBeUndefined());

test.each([
  [-3000, "just now"],
  [4999, "just now"],
  [12_000, "12 s ago"],
  [59_999, "59 s ago"],
  [60_000, "1 min ago"],
  [3_600_000, "1 h ago"],
  [47 * 3_600_000, "47 h ago"],
  [72 * 3_600_000, "3 d ago"],
])("%p ms is %s", (ms, text) => expect(timeAgo(ms)).toBe(text));

test("power, energy and memory have readable units", () => {
  expect([watts(412.4), watts(5321)]).toEqual(["412 W", "5.32 kW"]);
  expect([wattHours(0), wattHours(12.34), wattHours(4567), wattHours(1_234_567)]).toEqual([
    "0 Wh",
    "12.3 Wh",
    "4.57 kWh",
    "1.23 MWh",
  ]);
  expect(gibibytes(143_771)).toBe("140.4");
  expect(memory(143_771)).toBe("140.4 GiB");
  expect(memory(64 * 143_771)).toBe("8.78 TiB");
});

test.each([
  [1, "1-minute"],
  [15, "15-minute"],
  [60, "1-hour"],
  [90, "90-minute"],
  [1440, "1-day"],
])("buckets of %p minutes are called %s", (minutes, name) => expect(bucketName(minutes)).toBe(name));

test.each([
  [0, "0 ms"],
  [0.4, "< 1 ms"],
  [7.4, "7 ms"],
  [999.4, "999 ms"],
  [999.6, "1 s"],
  [1234, "1.23 s"],
  [59_994, "60 s"],
  [59_996, "1 min 0 s"],
  [125_000, "2 min 5 s"],
])("%d milliseconds are %s", (ms, text) => {
  expect(milliseconds(ms)).toBe(text);
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1 KiB"],
  [1_300_000, "1.24 MiB"],
  [2 ** 50, "1,020 TiB"],
])("%d bytes are %s", (bytes, text) => {
  expect(byteSize(bytes)).toBe(text);
});
