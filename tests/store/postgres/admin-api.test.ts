import { expect, test } from "bun:test";
import { whyNoPostgres } from "../../support/postgres.ts";

test.skipIf(whyNoPostgres !== undefined)(
  "the admin API and the counting of every kind of response pass the same tests on PostgreSQL",
  async () => {
    const child = Bun.spawn(
      [process.execPath, "test", "--timeout", "60000", "tests/admin", "tests/wire/counting.test.ts"],
      {
        cwd: `${import.meta.dir}/../../..`,
        env: { ...process.env, TOLLGATE_TEST_ENGINE: "postgres" },
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [output, status] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    expect(output.split("\n").filter((line) => line.startsWith("(fail)"))).toEqual([]);
    expect(output).toMatch(/^ *0 fail$/m);
    expect(status).toBe(0);
  },
  400_000,
);
