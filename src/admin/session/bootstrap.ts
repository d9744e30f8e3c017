import { link, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Change } from "../../domain/changes.ts";
import type { Store } from "../../store/store.ts";
import { generatePassword, hashPassword, passwordHashSetting, verifyPassword } from "./password.ts";
import { randomHex } from "./secrets.ts";

/** A problem that the operator must fix before the admin API can be served; the message is one sentence for them. */
export class AdminSetupError extends Error {
  override name = "AdminSetupError";
}

export interface BootstrapAdmin {
  store: Pick<Store, "sessions" | "settings">;
  config: { username: string; password: string | undefined; secretKey: string | undefined };
  /** Must exist. */
  dataDir: string;
  /** Shows text to the operator. A generated password is shown nowhere else. */
  print: (text: string) => void;
}

/**
 * Ensures that an admin password and a key for signing sessions exist. Safe if several processes start at once.
 * @throws AdminSetupError
 */
export async function bootstrapAdmin({
  store,
  config,
  dataDir,
  print,
}: BootstrapAdmin): Promise<{ signingKey: string }> {
  const signingKey = config.secretKey ?? (await loadOrCreateSecretKey(secretKeyFile(dataDir)).catch(throwSetupError));
  if (config.password !== undefined) await ensurePassword(store, config.password);
  else await createFirstPassword(store, config.username, print);
  const source = config.password === undefined ? "stored" : "environment";
  if ((await store.settings.find(passwordSourceSetting)) !== source)
    await store.settings.set(passwordSourceSetting, source);
  return { signingKey };
}

const passwordSourceSetting = "password_source";

/** Whether ADMIN_PASSWORD was set at the last start of a server: the next one would then undo a reset. */
export async function wasPasswordFromEnvironment({ settings }: Pick<Store, "settings">): Promise<boolean> {
  return (await settings.find(passwordSourceSetting)) === "environment";
}

/**
 * Sets a new password, generated if none is given, and ends all sessions.
 * @returns the new password
 */
export async function resetPassword(
  store: Pick<Store, "sessions" | "settings">,
  password: string = generatePassword(),
  by?: Change,
): Promise<string> {
  await store.settings.set(passwordHashSetting, await hashPassword(password), by);
  await store.sessions.deleteOthers("");
  return password;
}

/** Changes nothing if ADMIN_PASSWORD is the same as at the last start, so that sessions survive a restart. */
async function ensurePassword(store: BootstrapAdmin["store"], password: string): Promise<void> {
  const hash = await store.settings.find(passwordHashSetting);
  if (hash === undefined || !(await verifyPassword(password, hash))) await resetPassword(store, password);
}

async function createFirstPassword(
  store: BootstrapAdmin["store"],
  username: string,
  print: (text: string) => void,
): Promise<void> {
  if ((await store.settings.find(passwordHashSetting)) !== undefined) return;
  const password = generatePassword();
  const hash = await hashPassword(password);
  // If several processes start at once, one sets its password, and only that one shows it.
  if ((await store.settings.setIfAbsent(passwordHashSetting, hash)) === hash) print(passwordNotice(username, password));
}

function passwordNotice(username: string, password: string): string {
  const rule = "=".repeat(72);
  return `
${rule}
  An admin password was generated. It is shown only once.

      username   ${username}
      password   ${password}

  To replace it, run \`tollgate reset-password\`.
${rule}

`;
}

const secretKeyFile = (dataDir: string): string => join(dataDir, "secret_key");

/** @throws AdminSetupError if there is a key for signing sessions that a start could not use */
export async function requireUsableSecretKey(dataDir: string): Promise<void> {
  const file = secretKeyFile(dataDir);
  const key = await readIfExists(file).catch(throwSetupError);
  if (key !== undefined) usableKey(file, key);
}

const loadOrCreateSecretKey = async (file: string): Promise<string> =>
  usableKey(file, (await readIfExists(file)) ?? (await createSecretKey(file)));

function usableKey(file: string, content: string): string {
  const key = content.trim();
  if (key.length < 16) throw new AdminSetupError(`${file} holds no usable key; delete it to have a new one generated`);
  return key;
}

function throwSetupError(error: unknown): never {
  if (!(error instanceof Error) || !("code" in error)) throw error;
  throw new AdminSetupError(`secret_key cannot be read or created (${String(error.code)})`, { cause: error });
}

/**
 * Writes the whole file under another name and then links it: other processes see no file or a complete one, and the
 * first link wins.
 */
async function createSecretKey(file: string): Promise<string> {
  const draft = `${file}.${randomHex(8)}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(`${randomHex(32)}\n`);
    await handle.sync();
    await link(draft, file).catch(ignoring("EEXIST"));
  } finally {
    await handle.close();
    await rm(draft);
  }
  return readFile(file, "utf8");
}

const readIfExists = (file: string): Promise<string | undefined> => readFile(file, "utf8").catch(ignoring("ENOENT"));

function ignoring(code: string): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (error.code !== code) throw error;
    return undefined;
  };
}
