import { useSettingsQuery } from "../queries.ts";
import { useOverviewQuery } from "./queries.ts";

interface ServerAddress {
  /** Where `/v1` is. If it has a port of its own, only the operator knows the address that clients use. */
  origin: () => string;
  hasOwnPort: () => boolean;
  /** The served model, if it is configured. */
  model: () => string;
}

/** The address and the model that a client of this server needs. */
export function useServerAddress(): ServerAddress {
  const overview = useOverviewQuery();
  const settings = useSettingsQuery();
  const hasOwnPort = (): boolean => overview.data?.separate_ports === true;
  return {
    hasOwnPort,
    origin: () => (hasOwnPort() ? "http://ADDRESS" : location.origin),
    model: () => settings.data?.settings.find(({ name }) => name === "PROXY_ALIAS_MODEL")?.value || "MODEL",
  };
}
