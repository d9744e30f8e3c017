import { beforeAll, expect, test } from "bun:test";
import { builtProgram } from "../support/built-program.ts";
import { rounds } from "../support/rounds.ts";
import { runOverHttp } from "./limits-model/over-http.ts";
import { seed } from "./limits-model/seed.ts";

beforeAll(() => void builtProgram(), 120_000);

test("limits of two processes hold as the backend sees it, however responses end", async () => {
  expect(await runOverHttp(seed, rounds)).toEqual([]);
}, 120_000);
