import { expect, test } from "bun:test";
import { runProgram } from "../support/program.ts";

/** What a command says, and lines that it does not take; a space at the end is an empty argument. */
const refused: Record<string, string[]> = {
  "backup takes ": ["backup", "backup ", "backup hush b", "backup --force hush", "backup --keep", "backup --keep 3"],
  "backup takes a whole number from 1 to 10000 after --keep; ": ["0", "-1", "1.5", "10001", "all", ""].map(
    (count) => `backup --keep=${count} hush`,
  ),
  "restore takes ": ["restore", "restore ", "restore hush b", "restore --force hush"],
  "reset-password takes ": ["reset-password hush", "reset-password --password hush"],
  "check takes only the options --quick and --env-file; ": ["check hush", "check --slow"],
  "models takes only the options --schema and --env-file; see tollgate models --help": ["models hush"],
  "demo takes no arguments; see tollgate demo --help": ["demo --port=1"],
  "move-to takes ": [
    "move-to",
    "move-to mysql://u:hush@h/d",
    "move-to postgres://h/a postgres://u:hush@h/b",
    "move-to --hush postgres://h/a",
    "move-to --url-stdin postgres://u:hush@h/d",
    "move-to --url-stdin",
  ],
};

test.each(Object.entries(refused).flatMap(([said, lines]) => lines.map((line) => [line, said] as const)))(
  "%p is wrong usage, which is told in a line that shows nothing of it: %s",
  async (line, said) => {
    const { status, stdout, stderr } = await runProgram(line.split(" "), {}, { stdin: "mysql://u:hush@h/d\n" });
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toStartWith(`tollgate: ${said}`);
    expect(stderr).toMatch(/^[^\n]*\n$/);
    expect(stderr).not.toContain("hush");
  },
);
