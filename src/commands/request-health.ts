import type { Config } from "../config/config.ts";
import { causeOf } from "../proxy/upstream/failure-cause.ts";
import { socketPathOf } from "../runtime/unix-socket.ts";

const timeoutMs = 3000;

/** Requests `/healthz` of the server that runs with these settings on this host. @returns what is wrong, if anything is */
export async function requestHealth(config: Config): Promise<string | undefined> {
  const unix = socketPathOf(config.listen.adminHost);
  const url = unix === undefined ? `${adminOrigin(config)}/healthz` : "http://localhost/healthz";
  const name = unix === undefined ? url : config.listen.adminHost;
  try {
    const response = await fetch(url, {
      signal: AbortSignal.timeout(timeoutMs),
      proxy: false,
      // The certificate is made for the name that clients use, not for this address.
      tls: { rejectUnauthorized: false },
      ...(unix === undefined ? {} : { unix }),
    });
    return response.ok ? undefined : `${name} responds ${response.status}`;
  } catch (error) {
    return `${name} does not respond (${causeOf(error)})`;
  }
}

function adminOrigin({ listen: { adminHost, adminPort, port, tls } }: Config): string {
  return `${tls === undefined ? "http" : "https"}://${reachable(adminHost)}:${adminPort ?? port}`;
}

/** An address that a server can listen on may be none that a client can connect to. */
function reachable(host: string): string {
  const address = host.replace(/^\[|\]$/g, "");
  if (address === "0.0.0.0") return "127.0.0.1";
  if (address === "::") return "[::1]";
  return address.includes(":") ? `[${address}]` : address;
}
