import { AdminSetupError } from "../admin/session/bootstrap.ts";
import type { Config } from "../config/config.ts";
import { CertificateError } from "../runtime/certificate.ts";
import { ListenError } from "../runtime/listen.ts";
import { ModelsFileError } from "../server/current-catalog.ts";
import { AddressError, StorageError } from "../store/storage-error.ts";
import { CommandError } from "./command.ts";
import { storageName } from "./settings.ts";

/** What errors of a start are named after. */
export type StartConfig = Pick<Config, "listen" | "storage">;

/** What keeps a server from starting, for the operator who can fix it. @returns any other error as it is */
export async function toCommandError(error: unknown, { listen, storage }: StartConfig): Promise<unknown> {
  if (error instanceof CertificateError) {
    return new CommandError(
      `${error.part === "cert" ? "TLS_CERT" : "TLS_KEY"}: ${error.message} (handbook: HTTPS without a web server)`,
      2,
    );
  }
  if (error instanceof ModelsFileError) return new CommandError(error.message, 2);
  if (error instanceof ListenError) return listenCommandError(error, listen);
  if (error instanceof StorageError || error instanceof AdminSetupError) {
    return new CommandError(`${storageName(storage)}: ${error.message}`, error instanceof AddressError ? 2 : 1);
  }
  return error;
}

/** Bun reports a name that does not resolve as a port in use (1.4.5). */
async function listenCommandError(error: ListenError, { host }: Config["listen"]): Promise<CommandError> {
  const variable = error.host === host ? "HOST" : "ADMIN_HOST";
  const problem =
    error.host.startsWith("unix:") || (await resolves(error.host))
      ? error.message
      : `${variable}: ${JSON.stringify(error.host)} does not resolve; use an address of this machine, or a name of one`;
  return new CommandError(problem, 1, { cause: error });
}

const resolves = (host: string): Promise<boolean> =>
  Bun.dns.lookup(host).then(
    () => true,
    () => false,
  );
