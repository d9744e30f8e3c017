import { expect, test } from "bun:test";
import { withAllowedModels } from "../../../src/proxy/response/model-list.ts";

const filtered = (list: string): string | undefined => {
  const bytes = withAllowedModels(Buffer.from(list), (name) => name.startsWith("a"));
  return bytes === undefined ? undefined : Buffer.from(bytes).toString();
};

test.each([
  [
    '{"data":[{"id":"a"},{"id":"b"}],"object":"list","has_more":false}',
    '{"object":"list","has_more":false,"data":[{"id":"a"}]}',
  ],
  ['{"object":{"b":1},"has_more":["b"],"data":[{"id":"a"}],"first_id":"b"}', '{"data":[{"id":"a"}]}'],
  ['{ "data" : [ {"id":"b"}, {"id":"b","id":"\\u0061x","c":{"d":[1]} } ] }\n', '{"data":[{"id":"ax","c":{"d":[1]}}]}'],
  ['{"data":[{"id":"b"}]}', '{"data":[]}'],
  ['{"data":[7,null,{"name":"a"},"a"]}', '{"data":[]}'],
  ['{"data":[{"id":"b"}],"data":[{"id":"b"},{"id":"ab"}]}', '{"data":[{"id":"ab"}]}'],
  [
    '{"models":[{"name":"a","model":"a"},{"name":"a","model":"b"},{"type":"a"}]}',
    '{"models":[{"name":"a","model":"a"}]}',
  ],
])("of %s a key sees %s", (list, expected) => {
  expect(filtered(list)).toBe(expected);
});

test.each(["", "[]", '{"data":{}}', '{"models":{}}', "{"])("%p is not a list", (list) => {
  expect(filtered(list)).toBeUndefined();
});
