import { useSettingsQuery } from "../queries.ts";
import type { ClientValues } from "./quick-start-lines.ts";
import { type ListedModel, useListedModelsQuery, useServedModelsQuery, useOverviewQuery } from "./queries.ts";

export interface ServerAddress {
  /** Where `/v1` is. If it has a port of its own, and no `PUBLIC_URL`, only the operator knows the address that clients use. */
  origin: () => string;
  hasOwnPort: () => boolean;
  /** Those that a client may ask for: of the key if there is one, else of all backends. */
  models: () => readonly string[];
  /** The first of them. */
  model: () => string;
  /** The model's caps, as the list of models says for the key. */
  capsOf: (model: string) => Pick<ClientValues, "contextTokens" | "outputTokens">;
  /** What the models are is asked. */
  isLoading: () => boolean;
  /** Why the key lists no models. */
  keyError: () => Error | null;
}

/** The address and the models that a client of this server needs. @param apiKey empty: there is none */
export function useServerAddress(apiKey: () => string = () => ""): ServerAddress {
  const overview = useOverviewQuery();
  const settings = useSettingsQuery();
  const valueOf = (name: string): string | undefined =>
    settings.data?.settings.find((setting) => setting.name === name)?.value ?? undefined;
  const hasOwnPort = (): boolean => overview.data?.separate_ports === true;
  const names = useServedModelsQuery();
  // Only at a port that is known to have `/v1`.
  const listed = useListedModelsQuery(() => (overview.data === undefined || hasOwnPort() ? "" : apiKey()));
  const models = (): readonly string[] => {
    const ofKey = idsOf(listed.data);
    const known = ofKey.length > 0 ? ofKey : (names.data ?? []);
    const served = valueOf("PROXY_ALIAS_MODEL");
    return served === undefined || served === "" || known.includes(served) ? known : [served, ...known];
  };
  // The models of a file have caps of their own.
  const most = (): number[] => (valueOf("MODELS_FILE") ? [] : [Number(valueOf("MAX_CONTEXT_TOKENS") ?? 202_752)]);
  return {
    hasOwnPort,
    origin: () => valueOf("PUBLIC_URL") || (hasOwnPort() ? "http://ADDRESS" : location.origin),
    models,
    model: () => models()[0] ?? "MODEL",
    capsOf: (model) => capsOf(model, listed.data, most(), Number(valueOf("MAX_OUTPUT_TOKENS") ?? 16_384)),
    isLoading: () => settings.isPending || names.isPending || listed.isLoading,
    keyError: () => listed.error,
  };
}

/** The same for who has a key and no session: what the key lists, at the address of this page. */
export function useOwnAddress(apiKey: () => string): ServerAddress {
  const listed = useListedModelsQuery(apiKey);
  return {
    hasOwnPort: () => listed.isError,
    origin: () => (listed.isError ? "http://ADDRESS" : location.origin),
    models: () => idsOf(listed.data),
    model: () => idsOf(listed.data)[0] ?? "MODEL",
    capsOf: (model) => capsOf(model, listed.data, [], 16_384),
    isLoading: () => listed.isLoading,
    // It was accepted by the console, which may have another port than `/v1`.
    keyError: () => null,
  };
}

const idsOf = (listed: readonly ListedModel[] = []): string[] =>
  listed.filter(({ kind }) => kind !== "embedding").map(({ id }) => id);

/** @param most what holds for all models */
function capsOf(
  model: string,
  listed: readonly ListedModel[] | undefined,
  most: readonly number[],
  outputTokens: number,
): Pick<ClientValues, "contextTokens" | "outputTokens"> {
  const entry = listed?.find(({ id }) => id === model);
  const lengths = [...lengthsOf(entry), ...most];
  return {
    contextTokens: lengths.length === 0 ? "CONTEXT" : Math.min(...lengths),
    outputTokens: entry?.max_output_tokens ?? outputTokens,
  };
}

/** What Tollgate, vLLM and llama.cpp say of a model's context, in tokens. */
const lengthsOf = (entry: ListedModel | undefined): number[] =>
  [entry?.context_length, entry?.max_model_len, entry?.meta?.n_ctx].filter((length) => length !== undefined);
