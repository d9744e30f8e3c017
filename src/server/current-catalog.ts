import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { catalogFromEnvironment, fixedCatalog } from "../config/catalog.ts";
import type { Config, Environment } from "../config/config.ts";
import { maxModelsFileBytes, parseModelsFile } from "../config/models-file.ts";
import type { Catalog, CurrentCatalog } from "../domain/models.ts";
import type { Log } from "../log/log.ts";
import { createChangeDetector, stateOfFiles } from "../runtime/changed-files.ts";

/** What is wrong with the file of `MODELS_FILE`: a line for each fault. */
export class ModelsFileError extends Error {
  override name = "ModelsFileError";

  constructor(readonly faults: readonly string[]) {
    super(faults.join("\n"));
  }
}

export type CatalogConfig = Pick<Config, "modelsFile" | "upstream" | "rewrite" | "queue">;

/** @throws ModelsFileError */
export function readCatalog(config: CatalogConfig, environment: Environment): Catalog {
  const byEnvironment = catalogFromEnvironment(config);
  const path = config.modelsFile;
  if (path === undefined) return byEnvironment;
  const defaults = { rules: byEnvironment.otherModels, ...config.queue, maxConcurrency: config.queue.places };
  const parsed = parseModelsFile(readBytes(path), { path, environment, defaults });
  if ("faults" in parsed) throw new ModelsFileError(parsed.faults);
  return parsed.catalog;
}

/**
 * The catalog that the settings mean. If a file has it, the file is read again whenever it changed, and its catalog is in
 * use from then on, unless it has a fault. The file is polled, since whoever edits it may replace it, its folder or a link.
 * @param options.signal ends it
 * @throws ModelsFileError
 */
export function openCatalog(
  config: CatalogConfig,
  options: { environment: Environment; log: Log; signal: AbortSignal; intervalMs?: number },
): CurrentCatalog {
  const { environment, log, signal, intervalMs = 1000 } = options;
  const path = config.modelsFile;
  if (path === undefined) return fixedCatalog(readCatalog(config, environment));
  // Before it is read: a change during that is then seen as a change.
  const haveChanged = createChangeDetector([path], stateOfFiles([path]));
  const { catalog, replace } = createReplaceable(readCatalog(config, environment), log);
  let faults: readonly string[] = [];
  const look = (): void => {
    if (!haveChanged()) return;
    try {
      replace(readCatalog(config, environment));
      faults = [];
    } catch (error) {
      if (!(error instanceof ModelsFileError)) throw error;
      faults = error.faults;
      for (const fault of faults) log.warn("Models file changed, and the earlier one stays in use", { fault });
    }
  };
  const timer = setInterval(look, intervalMs);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  return { ...catalog, faults: () => faults };
}

/**
 * The catalog of a process whose parent reads the file. So it can start while the file has a fault, and a fault is logged
 * once.
 * @param read gets the parent's catalog, and then hands on those that replace it
 */
export async function followCatalog(
  read: (onReplaced: (catalog: Catalog) => void) => Promise<Catalog>,
  log: Log,
): Promise<CurrentCatalog> {
  const early: Catalog[] = [];
  let take = (next: Catalog): void => void early.push(next);
  const { catalog, replace } = createReplaceable(await read((next) => take(next)), log);
  take = replace;
  for (const next of early) replace(next);
  return catalog;
}

function createReplaceable(first: Catalog, log: Log): { catalog: CurrentCatalog; replace: (next: Catalog) => void } {
  const listeners: ((catalog: Catalog) => void)[] = [];
  let current = first;
  log.info("Models file in use", fieldsOf(current));
  return {
    catalog: { get: () => current, onReplaced: (listener) => void listeners.push(listener) },
    replace(next) {
      const previous = current;
      if (next.file?.hash === previous.file?.hash) return log.info("Models file is the one in use", fieldsOf(next));
      current = next;
      log.info("Models file changed and in use", fieldsOf(next));
      const gone = previous.models.filter(({ name }) => !next.models.some((model) => model.name === name));
      for (const { name } of gone) log.warn("Model left the models file", { model: name });
      for (const listener of listeners) listener(next);
    },
  };
}

const fieldsOf = ({ file, backends, models }: Catalog) => ({
  file: file?.path,
  hash: file?.hash,
  backends: backends.length,
  models: models.length,
});

/** @returns at most one byte more than are allowed */
function readBytes(path: string): Uint8Array {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!fstatSync(file).isFile()) throw new ModelsFileError([`MODELS_FILE: ${JSON.stringify(path)} is not a file`]);
      const bytes = new Uint8Array(maxModelsFileBytes + 1);
      let length = 0;
      for (let read = -1; read !== 0 && length < bytes.length; length += read) {
        read = readSync(file, bytes, length, bytes.length - length, null);
      }
      return bytes.subarray(0, length);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof ModelsFileError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new ModelsFileError([`MODELS_FILE: ${JSON.stringify(path)} cannot be read (${code})`]);
  }
}
