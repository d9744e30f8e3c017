import { expect, test } from "bun:test";
import { changedMembers } from "../../../console/src/operator/changed-members.ts";

test.each([
  [null, null, []],
  [
    '{"name":"a","tags":["x"]}',
    '{"name":"b"}',
    [
      ["name", "a", "b"],
      ["tags", '["x"]', undefined],
    ],
  ],
  [null, '{"requests_per_minute":60}', [["requests_per_minute", undefined, "60"]]],
  [
    '{"name":"a"}',
    '{"note":"cut o',
    [
      ["name", "a", undefined],
      ["", undefined, '{"note":"cut o…'],
    ],
  ],
])("of %j and %j, the members are %j", (before, after, members) => {
  expect(changedMembers({ before, after }).map((one) => [one.name, one.before, one.after])).toEqual(members);
});
