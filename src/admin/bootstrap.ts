import { link, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "../store/store.ts";
import { generatePassword, hashPassword, passwordHashSetting, verifyPassword } from "./password.ts";
import { randomHex } from "./secrets.ts";

/** What the operator has to put right before the admin side can be served; the message is one sentence for them. */
export class AdminSetupError extends Error {
  override name = "AdminSetupError";
}

export interface BootstrapAdmin {
  store: Pick<Store, "sessions" | "settings">;
  config: { username: string; password: string | undefined; secretKey: string | undefined };
  /** Exists already. */
  dataDir: string;
  /** Shows text to the operator: the one place where a generated password can be read. */
  print: (text: string) => void;
}

/**
 * Makes sure that there is a password and a key to sign sessions with. Safe where several processes start at once.
 * @throws AdminSetupError
 */
export async function bootstrapAdmin({
  store,
  config,
  dataDir,
  print,
}: BootstrapAdmin): Promise<{ signingKey: string }> {
  const signingKey = config.secretKey ?? (await keptSecretKey(join(dataDir, "secret_key")).catch(explain));
  if (config.password !== undefined) await holdPassword(store, config.password);
  else await makeFirstPassword(store, config.username, print);
  return { signingKey };
}

/**
 * Sets a new password, a generated one where none is given, and ends all sessions.
 * @returns the password that holds now
 */
export async function resetPassword(
  store: Pick<Store, "sessions" | "settings">,
  password: string = generatePassword(),
): Promise<string> {
  await store.settings.set(passwordHashSetting, await hashPassword(password));
  await store.sessions.deleteAll();
  return password;
}

/** Restarting with the same ADMIN_PASSWORD keeps everybody logged in. */
async function holdPassword(store: BootstrapAdmin["store"], password: string): Promise<void> {
  const hash = await store.settings.find(passwordHashSetting);
  if (hash === undefined || !(await verifyPassword(password, hash))) await resetPassword(store, password);
}

async function makeFirstPassword(
  store: BootstrapAdmin["store"],
  username: string,
  print: (text: string) => void,
): Promise<void> {
  if ((await store.settings.find(passwordHashSetting)) !== undefined) return;
  const password = generatePassword();
  const hash = await hashPassword(password);
  // Of several processes that start at once one wins, and only the winner's password is shown.
  if ((await store.settings.setIfAbsent(passwordHashSetting, hash)) === hash) print(passwordNotice(username, password));
}

function passwordNotice(username: string, password: string): string {
  const rule = "=".repeat(72);
  return `
${rule}
  The admin password was generated just now. It is shown only this once.

      username   ${username}
      password   ${password}

  Lost it? \`tollgate reset-password\` makes another.
${rule}

`;
}

/** The key in `file`, made at the first start. */
async function keptSecretKey(file: string): Promise<string> {
  const kept = (await readIfThere(file)) ?? (await makeSecretKey(file));
  const key = kept.trim();
  if (key.length < 16) throw new AdminSetupError(`${file} holds no usable key; delete it to have a new one made`);
  return key;
}

function explain(error: unknown): never {
  if (!(error instanceof Error) || !("code" in error)) throw error;
  throw new AdminSetupError(`secret_key cannot be read or made (${String(error.code)})`, { cause: error });
}

/** Written whole under another name and then linked: another process sees no file or all of it, and the first link wins. */
async function makeSecretKey(file: string): Promise<string> {
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

const readIfThere = (file: string): Promise<string | undefined> => readFile(file, "utf8").catch(ignoring("ENOENT"));

function ignoring(code: string): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (error.code !== code) throw error;
    return undefined;
  };
}
