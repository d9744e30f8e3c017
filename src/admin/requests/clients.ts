import type { Engine } from "../../domain/backends.ts";
import type { Catalog, ClientRule } from "../../domain/models.ts";
import type { ClientSum, RequestPosition } from "../../store/requests/contract.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { msPerMinute, timestampOf } from "../../time/seoul.ts";
import type { ClientsBody, ClientsQuery } from "./clients-contract.ts";

export interface ClientsDeps {
  store: Pick<Store, "requests">;
  clock: WallClock;
  catalog: () => Catalog;
  /** Asks each backend what it is, unless that is known. */
  learnClientNeeds: () => Promise<FindNeeds>;
}

/** @param client program and version */
type FindNeeds = (client: string, backends: readonly string[]) => { engines: readonly Engine[]; rules: ClientRule[] };

/** Each is a short read of the database, between which counts are written; a read has up to 2000 rows. */
const maxReads = 100;
const maxRows = 200;

export const listClients =
  ({ store, clock, catalog, learnClientNeeds }: ClientsDeps) =>
  async ({ query }: { query: ClientsQuery }): Promise<ClientsBody> => {
    const since = clock() - query.hours * 60 * msPerMinute;
    const { sums, next } = await readSums(store.requests, { keyId: query.key_id, since });
    const rows = rowsOf(sums);
    return {
      hours: query.hours,
      since: timestampOf(next?.endedAt ?? since),
      complete: next === undefined,
      request_count: rows.reduce((all, row) => all + row.request_count, 0),
      prompt_tokens: rows.reduce((all, row) => all + row.prompt_tokens, 0),
      rows: rows.slice(0, maxRows),
      advice: adviceOf(sums, catalog(), await learnClientNeeds()),
    };
  };

async function readSums(
  log: Store["requests"],
  filter: Parameters<Store["requests"]["sumClients"]>[0],
): Promise<{ sums: ClientSum[]; next: RequestPosition | undefined }> {
  const sums: ClientSum[] = [];
  let next: RequestPosition | undefined;
  for (let read = 0; read < maxReads; read++) {
    const part = await log.sumClients(filter, next);
    sums.push(...part.sums);
    next = part.next;
    if (next === undefined) break;
  }
  return { sums, next };
}

function rowsOf(sums: readonly ClientSum[]): ClientsBody["rows"] {
  const rows = new Map<string, ClientsBody["rows"][number]>();
  for (const sum of sums) {
    const { client, requestClass } = sum;
    const name = JSON.stringify([client, requestClass]);
    const row = rows.get(name) ?? {
      client,
      class: requestClass,
      request_count: 0,
      prompt_tokens: 0,
      from_cache_tokens: 0,
      output_tokens: 0,
    };
    row.request_count += sum.requestCount;
    row.prompt_tokens += sum.promptTokens;
    row.from_cache_tokens += sum.fromCacheTokens;
    row.output_tokens += sum.outputTokens;
    rows.set(name, row);
  }
  return [...rows.values()].toSorted((a, b) => b.prompt_tokens - a.prompt_tokens || b.request_count - a.request_count);
}

/** What a request would not have met with the rules that its client needs in front of its backend. */
function adviceOf(sums: readonly ClientSum[], catalog: Catalog, findNeeds: FindNeeds): ClientsBody["advice"] {
  const found = new Map<string, ClientsBody["advice"][number]>();
  for (const sum of sums) {
    const { client, backend } = sum;
    const setting = (catalog.models.find(({ servedAs }) => servedAs === sum.modelSent) ?? catalog.otherModels)
      .clientRules;
    // `auto` does what is due; requests without tokens were lists of models, or refused by us.
    if (client === null || setting === "auto" || (sum.promptTokens === 0 && !sum.isRefused)) continue;
    const { engines, rules } = findNeeds(client, backend === null ? [] : [backend]);
    const missing = rules.filter((rule) => !setting.includes(rule));
    if (missing.length === 0) continue;
    const name = JSON.stringify([client, backend, missing]);
    const row = found.get(name) ?? {
      client,
      backend,
      engines: [...engines],
      rules: missing,
      request_count: 0,
      refused_count: 0,
      read_again_tokens: 0,
    };
    row.request_count += sum.requestCount;
    row.refused_count += sum.isRefused ? sum.requestCount : 0;
    row.read_again_tokens += sum.promptTokens - sum.fromCacheTokens;
    found.set(name, row);
  }
  return [...found.values()].toSorted((a, b) => b.read_again_tokens - a.read_again_tokens);
}
