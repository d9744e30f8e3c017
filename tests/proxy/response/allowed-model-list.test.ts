import { expect, test } from "bun:test";
import { withAllowedModels } from "../../../src/proxy/response/allowed-model-list.ts";

const filtered = (list: string): string | undefined => {
  const bytes = withAllowedModels(Buffer.from(list), (name) => name.startsWith("a"));
  return bytes === undefined ? undefined : Buffer.from(bytes).toString();
};

test.each([
  ['{"data":[{"id":"a"},{"id":"b"}],"n":1.0}', '{"data":[{"id":"a"}],"n":1.0}'],
  [
    '{ "data" : [ {"id":"b"}, { "id":"\\u0061x","c":12345678901234567890 } ] }\n',
    '{ "data" : [{ "id":"\\u0061x","c":12345678901234567890 }] }\n',
  ],
  ['{"data":[{"id":"b"}]}', '{"data":[]}'],
  ['{"data":[7,null,{"name":"a"},"a"]}', '{"data":[]}'],
  ['{"data":[{"id":"a"}],"data":[{"id":"b"},{"id":"ab"}]}', '{"data":[{"id":"a"}],"data":[{"id":"ab"}]}'],
])("of %s a key sees %s", (list, expected) => {
  expect(filtered(list)).toBe(expected);
});

test.each(["", "[]", '{"data":{}}', '{"models":[]}', "{"])("%p is not a list", (list) => {
  expect(filtered(list)).toBeUndefined();
});
