import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../config/config.ts";
import type { Certificate } from "../runtime/certificate.ts";
import { createConnections, listen, ListenError, listenError } from "../runtime/listen.ts";
import { findSocketProblem, socketPathOf } from "../runtime/unix-socket.ts";

/**
 * Listens as a start does, and stops at once.
 * @param isServed a server runs with these settings: its ports and its socket are taken, and others stand in for them
 * @throws ListenError if a server could not listen
 */
export async function rehearseListening(
  { host, port, adminHost, adminPort }: Config["listen"],
  certificate: Certificate | undefined,
  isServed: boolean,
): Promise<void> {
  await rehearse(host, isServed ? 0 : port, certificate, isServed);
  if (adminPort !== undefined) await rehearse(adminHost, isServed ? 0 : adminPort, certificate, isServed);
}

async function rehearse(
  host: string,
  port: number,
  certificate: Certificate | undefined,
  isServed: boolean,
): Promise<void> {
  const path = socketPathOf(host);
  if (path !== undefined) return await requireUsableSocket(host, path, isServed);
  const unavailable = (): Response => new Response(null, { status: 503 });
  const connections = createConnections();
  const listener = listen({
    host,
    port,
    shared: false,
    certificate,
    connections,
    fetch: unavailable,
    internalError: unavailable,
  });
  await listener.cut();
}

async function requireUsableSocket(host: string, path: string, isServed: boolean): Promise<void> {
  const problem = isServed ? undefined : await findSocketProblem(path);
  if (problem !== undefined) throw new ListenError(problem, host);
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw listenError(error, host, 0);
  }
}
