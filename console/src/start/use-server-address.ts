import { useSettingsQuery } from "../queries.ts";
import type { ClientValues } from "./quick-start-lines.ts";
import { type ListedModel, useListedModelsQuery, useModelNamesQuery, useOverviewQuery } from "./queries.ts";

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
  const names = useModelNamesQuery();
  // Only at a port that is known to have `/v1`.
  const listed = useListedModelsQuery(() => (overview.data === undefined || hasOwnPort() ? "" : apiKey()));
  const models = (): readonly string[] => {
    const ofKey = listed.data?.filter(({ kind }) => kind !== "embedding").map(({ id }) => id) ?? [];
    const known = ofKey.length > 0 ? ofKey : (names.data ?? []);
    const served = valueOf("PROXY_ALIAS_MODEL");
    return served === undefined || served === "" || known.includes(served) ? known : [served, ...known];
  };
  return {
    hasOwnPort,
    origin: () => valueOf("PUBLIC_URL") || (hasOwnPort() ? "http://ADDRESS" : location.origin),
    models,
    model: () => models()[0] ?? "MODEL",
    capsOf(model) {
      const entry = listed.data?.find(({ id }) => id === model);
      // The models of a file have caps of their own.
      const most = valueOf("MODELS_FILE") ? [] : [Number(valueOf("MAX_CONTEXT_TOKENS") ?? 202_752)];
      const lengths = [...lengthsOf(entry), ...most];
      return {
        contextTokens: lengths.length === 0 ? "CONTEXT" : Math.min(...lengths),
        outputTokens: entry?.max_output_tokens ?? Number(valueOf("MAX_OUTPUT_TOKENS") ?? 16_384),
      };
    },
    isLoading: () => settings.isPending || names.isPending || listed.isLoading,
    keyError: () => listed.error,
  };
}

/** What Tollgate, vLLM and llama.cpp say of a model's context, in tokens. */
const lengthsOf = (entry: ListedModel | undefined): number[] =>
  [entry?.context_length, entry?.max_model_len, entry?.meta?.n_ctx].filter((length) => length !== undefined);
