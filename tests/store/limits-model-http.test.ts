import { beforeAll, expect, test } from "bun:test";
import { builtProgram } from "../support/built-program.ts";
import { rounds } from "../support/rounds.ts";
import { runOverHttp } from "./limits-model/over-http.ts";
import { seed } from "./limits-model/seed.ts";

beforeAll(() => void builtProgram(), 120_000);

/** By night processes are killed, which the gate has no time for. */
const isKilled = rounds > 3;

test("limits of two processes hold as the backend sees it, however responses and processes end", async () => {
  expect(await runOverHttp({ seed, rounds, isKilled })).toEqual([]);
}, 300_000);
