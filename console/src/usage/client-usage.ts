import type { ClientUsage } from "../queries.ts";

export type ClientGroup = "client" | "program" | "class";
type Row = ClientUsage["rows"][number];

/** One line of the table. */
export interface ClientLine extends Omit<Row, "client" | "class"> {
  /** Null: the requests do not say. */
  name: string | null;
}

const namesOf: Readonly<Record<ClientGroup, (row: Row) => string | null>> = {
  client: ({ client }) => client,
  program: ({ client }) => client?.split("/")[0] ?? null,
  class: (row) => row.class,
};

/** Most input first. */
export function groupClients(rows: readonly Row[], by: ClientGroup): ClientLine[] {
  const lines = new Map<string | null, ClientLine>();
  for (const row of rows) {
    const name = namesOf[by](row);
    const line = lines.get(name);
    const { client: _client, class: _class, ...sums } = row;
    if (line === undefined) {
      lines.set(name, { name, ...sums });
      continue;
    }
    line.request_count += sums.request_count;
    line.prompt_tokens += sums.prompt_tokens;
    line.from_cache_tokens += sums.from_cache_tokens;
    line.output_tokens += sums.output_tokens;
  }
  return [...lines.values()].toSorted((a, b) => b.prompt_tokens - a.prompt_tokens);
}

/** `compaction took 31 % of the input`; undefined if no request says what it is for, or all are for one thing. */
export function classesSentence(rows: readonly Row[]): string | undefined {
  const lines = groupClients(rows, "class");
  const whole = lines.reduce((sum, { prompt_tokens: input }) => sum + input, 0);
  const named = lines.flatMap(({ name, prompt_tokens: input }) => (name === null ? [] : [{ name, input }]));
  if (named.length === 0 || lines.length < 2 || whole === 0) return undefined;
  const shares = named.slice(0, 3).map(({ name, input }) => `${name} took ${Math.round((input / whole) * 100)}%`);
  return `${shares.join(", ")} of the input`;
}
