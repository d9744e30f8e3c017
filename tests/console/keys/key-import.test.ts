import { describe, expect, test } from "bun:test";
import { maxImportedKeys, parseNames, secretCsv } from "../../../console/src/keys/key-import.ts";

describe("the names of an import", () => {
  test.each([
    ["one a line", "alpha\nbeta\n", ["alpha", "beta"]],
    ["Windows line ends, and no last one", "alpha\r\nbeta", ["alpha", "beta"]],
    ["a byte order mark", "\uFEFFalpha\n", ["alpha"]],
    ["the first column of a CSV, with its heading", "Name,team\nalpha,red\nbeta,blue\n", ["alpha", "beta"]],
    ["other separators", "alpha;red\nbeta\tblue", ["alpha", "beta"]],
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
    expect(parseNames(many).problem).toBe("At most 1000 keys can be created at once");
  });
});

test("the CSV of new keys has their secrets, and no formulas", () => {
  expect(secretCsv([{ id: 7, name: "=cmd", key: "abc" }])).toBe("id,name,key\r\n7,'=cmd,abc\r\n");
});
