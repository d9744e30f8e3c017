import { describe, expect, test } from "bun:test";
import { maxImportedKeys, parseImport, secretCsv } from "../../../console/src/keys/key-import.ts";
import { keyCsv, tagValues, userCsv } from "../../../console/src/keys/key-list.ts";
import type { Key, Team, User } from "../../../console/src/queries.ts";
import { limitNames } from "../../../src/domain/limits.ts";

const parseNames = (text: string) => {
  const { rows, ...more } = parseImport(text, "name");
  return { ...more, names: rows.map(({ id }) => id) };
};

describe("the names of an import", () => {
  test.each([
    ["one a line", "alpha\nbeta\n", ["alpha", "beta"]],
    ["Windows line ends, and no last one", "alpha\r\nbeta", ["alpha", "beta"]],
    ["a byte order mark", "\uFEFFalpha\n", ["alpha"]],
    ["the first column of a CSV, with its heading", "Name,team\nalpha,red\nbeta,blue\n", ["alpha", "beta"]],
    ["other separators", "alpha;red\nbeta;blue", ["alpha", "beta"]],
    ["tabs", "alpha\tred\nbeta, too\tblue", ["alpha", "beta, too"]],
    ["quoted cells", '"a, ""b""",x\n"c\nd",y\n', ['a, "b"', "c\nd"]],
    ["a quote in a name", 'the "old" one\nnext', ['the "old" one', "next"]],
    ["empty lines, blanks and names that come twice", "\n alpha \n\n,x\nalpha\n", ["alpha"]],
    ["nothing", "", []],
  ])("are read from %s", (_, text, names) => {
    expect(parseNames(text)).toMatchObject({ names, problem: undefined });
  });

  test("are refused if they are too long or too many", () => {
    expect(parseNames("name\na\nb\na\nc\nb\na").repeated).toEqual(["a", "b"]);
    expect(parseNames("a\nA").repeated).toEqual([]);
    expect(parseNames("x".repeat(121)).problem).toStartWith("A name has more than 120 characters: xxx");
    expect(parseNames("🙂".repeat(120)).problem).toBeUndefined();
    const many = Array.from({ length: maxImportedKeys + 1 }, (__, index) => `key ${index}`).join("\n");
    expect(parseNames(many).problem).toBe("At most 1000 can be created at once");
  });
});

test("the CSV of new keys has their secrets, and no formulas", () => {
  expect(secretCsv([{ id: 7, name: "=cmd", key: "abc" }])).toBe("id,name,key\r\n7,'=cmd,abc\r\n");
});

describe("the other columns of an import", () => {
  const rowsOf = (text: string, idColumn: "name" | "external" = "name") => parseImport(text, idColumn).rows;

  test("set what they are called after; an empty cell sets nothing", () => {
    const text =
      "\uFEFFname,Team,tokens_per_day,team_id,owner,tags,note\r\n" +
      'a,ml,1.5M,,Kim,"x, y","two\nlines; one"\r\nb,,,7,,,\r\nc\r\n';
    expect(rowsOf(text)).toEqual([
      {
        id: "a",
        fields: { team: "ml", tokens_per_day: 1_500_000, owner: "Kim", tags: ["x", "y"], note: "two\nlines; one" },
      },
      { id: "b", fields: { team_id: 7 } },
      { id: "c", fields: {} },
    ]);
    expect(rowsOf("external;name;max_concurrency\nu-1;Kim;4", "external")).toEqual([
      { id: "u-1", fields: { name: "Kim", max_concurrency: 4 } },
    ]);
  });

  test("that mean nothing are named, and a cell that cannot be read refuses the file", () => {
    expect(parseImport("name,tokens_per_dya,constructor\na,5,x", "name")).toMatchObject({
      rows: [{ id: "a", fields: {} }],
      unread: ["tokens_per_dya", "constructor"],
      problem: undefined,
    });
    expect(parseImport("name,tokens_per_day\na,many", "name").problem).toBe("a: tokens_per_day cannot be many");
    expect(parseImport("name,team_id\na,ml", "name").problem).toBe("a: team_id cannot be ml");
    expect(parseImport("name,priority\na,urgent", "name").problem).toBe("a: priority cannot be urgent");
    expect(parseImport("external,owner\na,Kim", "external").unread).toEqual(["owner"]);
  });

  test("are those of the CSV of users, and of keys", () => {
    const limits = Object.fromEntries(limitNames.map((name, index) => [name, index + 1]));
    const user = { external: "+1", name: "Kim; Lee", team_id: 3, priority: "low", note: null, tags: ["a", "b"] };
    const list = [{ ...user, ...limits, is_active: true, first_seen_at: "x", last_seen_at: null } as unknown as User];
    const team = { id: 3, name: "ml" } as Team;
    expect(rowsOf(userCsv(list, [team]), "external")).toEqual([
      { id: "+1", fields: { name: "Kim; Lee", team: "ml", ...limits, priority: "low", tags: ["a", "b"] } },
    ]);
    const key = {
      id: 5,
      name: "=a",
      key: "abcd…wxyz",
      team_id: 3,
      priority: null,
      owner: null,
      note: "n",
      tags: [],
      ...limits,
    };
    expect(rowsOf(keyCsv([key as unknown as Key]))).toEqual([
      { id: "=a", fields: { note: "n", ...limits, team_id: 3 } },
    ]);
  });
});

test("the values of tags are what follows the text that they begin with", () => {
  expect(tagValues(["team:ml", "team:", "dev", "team: ops"], "team:")).toEqual(["ml", "ops"]);
  expect(tagValues(["ml", "dev"], "")).toEqual(["ml", "dev"]);
});
