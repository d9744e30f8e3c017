import type { Backend, Catalog, CurrentCatalog } from "../domain/models.ts";

/**
 * Has each backend of the catalog polled, and follows changes of it: one that left or moved is no longer polled as before.
 * @param start polls one. @returns stops that
 */
export function pollBackends(catalog: CurrentCatalog, start: (backend: Backend) => () => void): () => void {
  const polled = new Map<string, { address: string; stop: () => void }>();
  let isStopped = false;

  function follow({ backends }: Catalog): void {
    if (isStopped) return;
    const addresses = new Map(backends.map((backend) => [backend.name, addressOf(backend)]));
    for (const [name, { address, stop }] of polled) {
      if (addresses.get(name) === address) continue;
      stop();
      polled.delete(name);
    }
    for (const backend of backends) {
      if (polled.has(backend.name)) continue;
      polled.set(backend.name, { address: addressOf(backend), stop: start(backend) });
    }
  }

  follow(catalog.get());
  catalog.onReplaced(follow);
  return () => {
    isStopped = true;
    for (const { stop } of polled.values()) stop();
  };
}

const addressOf = ({ baseUrl, socket = "", apiKey = "" }: Backend): string => [baseUrl, socket, apiKey].join(" ");
