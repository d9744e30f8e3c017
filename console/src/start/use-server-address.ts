import { useSettingsQuery } from "../queries.ts";
import { useOverviewQuery } from "./queries.ts";

interface ServerAddress {
  /** Where `/v1` is. If it has a port of its own, only the operator knows the address that clients use. */
  origin: () => string;
  hasOwnPort: () => boolean;
  /** The served model, if it is configured. */
  model: () => string;
  /** The caps, in tokens. */
  contextTokens: () => number;
  outputTokens: () => number;
}

/** The address and the model that a client of this server needs. */
export function useServerAddress(): ServerAddress {
  const overview = useOverviewQuery();
  const settings = useSettingsQuery();
  const valueOf = (name: string): string | undefined =>
    settings.data?.settings.find((setting) => setting.name === name)?.value ?? undefined;
  const hasOwnPort = (): boolean => overview.data?.separate_ports === true;
  return {
    hasOwnPort,
    origin: () => (hasOwnPort() ? "http://ADDRESS" : location.origin),
    model: () => valueOf("PROXY_ALIAS_MODEL") || "MODEL",
    contextTokens: () => Number(valueOf("MAX_CONTEXT_TOKENS") ?? 202_752),
    outputTokens: () => Number(valueOf("MAX_OUTPUT_TOKENS") ?? 16_384),
  };
}
