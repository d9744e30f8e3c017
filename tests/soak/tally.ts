import type { AdminClient } from "../support/admin-client.ts";

/** Usage as seen by clients, by the simulator or by the program's counters. */
export interface Sum {
  requests: number;
  inputTokens: number;
  outputTokens: number;
}

/** By key name. */
export type Tally = Map<string, Sum>;

export function add(tally: Tally, name: string, sum: Sum): void {
  const { requests, inputTokens, outputTokens } = tally.get(name) ?? { requests: 0, inputTokens: 0, outputTokens: 0 };
  tally.set(name, {
    requests: requests + sum.requests,
    inputTokens: inputTokens + sum.inputTokens,
    outputTokens: outputTokens + sum.outputTokens,
  });
}

interface Row {
  key_name: string;
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

/** The program's counters as the console reads them: by key, day, minute and model, and from the request log. */
export async function readCounters(
  admin: AdminClient,
): Promise<Record<"keys" | "days" | "minutes" | "models" | "log", Tally>> {
  const keys: Tally = new Map();
  for (const key of await admin.listKeys()) {
    add(keys, key.name, {
      requests: key.total_request_count,
      inputTokens: key.total_input_tokens,
      outputTokens: key.total_output_tokens,
    });
  }
  const days = await admin.expectOk<Row[]>("GET", "/api/usage/daily?days=7");
  const history = await admin.expectOk<{ points: Row[] }>("GET", "/api/usage/history?days=30&bucket_minutes=1");
  const models = await admin.expectOk<{ rows: Row[] }>("GET", "/api/usage/costs?by=key&limit=2000");
  const counters = { keys, days: tallyOf(days), minutes: tallyOf(history.points), models: tallyOf(models.rows) };
  return { ...counters, log: await tallyLog(admin) };
}

interface LogRow extends Row {
  input_tokens: number;
}

/** The rows that count: only these have tokens, if only 0. */
async function tallyLog(admin: AdminClient): Promise<Tally> {
  const tally: Tally = new Map();
  for (let cursor: string | null = ""; cursor !== null;) {
    const path = `/api/requests?limit=200${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const page: { requests: LogRow[]; next_cursor: string | null } = await admin.expectOk("GET", path);
    for (const row of page.requests.filter(({ input_tokens: tokens }) => tokens !== null)) {
      add(tally, row.key_name, { requests: 1, inputTokens: row.input_tokens, outputTokens: row.output_tokens });
    }
    cursor = page.next_cursor;
  }
  return tally;
}

function tallyOf(rows: Row[]): Tally {
  const tally: Tally = new Map();
  for (const row of rows) {
    add(tally, row.key_name, {
      requests: row.request_count,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
    });
  }
  return tally;
}

/** One line for each name that differs between two tallies. A name without usage counts as absent. */
export function differences(left: Tally, right: Tally): string[] {
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].flatMap((name) => {
    const [one, other] = [left, right].map((tally) => shown(tally.get(name)));
    return one === other ? [] : [`${name}: ${one} against ${other}`];
  });
}

function shown(sum: Sum | undefined): string {
  const { requests, inputTokens, outputTokens } = sum ?? { requests: 0, inputTokens: 0, outputTokens: 0 };
  return `${requests} requests, ${inputTokens} input, ${outputTokens} output`;
}
