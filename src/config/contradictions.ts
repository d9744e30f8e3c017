export type Environment = Readonly<Record<string, string | undefined>>;

interface Settings {
  HOST: string;
  PORT: number;
  ADMIN_HOST?: string;
  ADMIN_PORT?: number;
  TLS_CERT?: string;
  TLS_KEY?: string;
  PROCESSES: number | "auto";
  MAX_BODY_BYTES: number;
  MAX_HELD_BYTES: number;
  DATABASE_URL?: string;
  BACKUP_DIR?: string;
  SECRET_KEY?: string;
  MODELS_FILE?: string;
}

/** @returns a line for each pair of settings, all allowed one by one, that exclude each other */
export function findContradictions(settings: Settings, environment: Environment): string[] {
  const problems = settings.MODELS_FILE === undefined ? [] : besideFile(environment);
  if (settings.ADMIN_PORT !== undefined && settings.ADMIN_PORT !== 0 && settings.ADMIN_PORT === settings.PORT) {
    problems.push(`ADMIN_PORT: "${settings.ADMIN_PORT}" is not allowed; use another port than PORT, or leave it unset`);
  }
  if (settings.ADMIN_HOST !== undefined && settings.ADMIN_PORT === undefined) {
    problems.push("ADMIN_HOST: has no effect without ADMIN_PORT; set both or neither");
  }
  problems.push(...listenContradictions(settings), ...signInContradictions(environment));
  if (settings.MAX_BODY_BYTES * 4 > settings.MAX_HELD_BYTES) {
    problems.push(
      "MAX_HELD_BYTES: must be at least four times MAX_BODY_BYTES, so that a key can send the largest body",
    );
  }
  if (settings.DATABASE_URL !== undefined && settings.SECRET_KEY === undefined) {
    problems.push("SECRET_KEY: must be set together with DATABASE_URL; use the same value for all instances");
  }
  if (settings.DATABASE_URL !== undefined && settings.BACKUP_DIR !== undefined) {
    problems.push("BACKUP_DIR: must not be set together with DATABASE_URL; use pg_dump for PostgreSQL");
  }
  return problems;
}

function listenContradictions(settings: Settings): string[] {
  const problems: string[] = [];
  if ((settings.TLS_CERT === undefined) !== (settings.TLS_KEY === undefined)) {
    const missing = settings.TLS_CERT === undefined ? "TLS_CERT" : "TLS_KEY";
    problems.push(`${missing}: must be set together with ${missing === "TLS_KEY" ? "TLS_CERT" : "TLS_KEY"}`);
  }
  if (!settings.HOST.startsWith("unix:")) return problems;
  if (settings.PROCESSES !== 1) {
    problems.push("PROCESSES: several processes cannot share a UNIX socket; use 1, or an address as HOST");
  }
  if (settings.TLS_CERT !== undefined && settings.ADMIN_PORT === undefined) {
    problems.push("TLS_CERT: has no effect on a UNIX socket; leave it unset, or set ADMIN_PORT");
  }
  return problems;
}

const besideIssuer = ["OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "ADMIN_URL"];

function signInContradictions(environment: Environment): string[] {
  const isSet = (name: string): boolean => (environment[name] ?? "") !== "";
  if (isSet("OIDC_CLIENT_SECRET_FILE") && isSet("OIDC_CLIENT_SECRET"))
    return ["OIDC_CLIENT_SECRET_FILE: must not be set together with OIDC_CLIENT_SECRET"];
  if (isSet("OIDC_ISSUER")) {
    const missing = besideIssuer.filter((name) => !isSet(name) && !isSet(`${name}_FILE`));
    return missing.map((name) => `${name}: must be set together with OIDC_ISSUER`);
  }
  const idle = Object.keys(environment).filter((name) => /^OIDC_(CLIENT|ADMIN|VIEWER)_/.test(name) && isSet(name));
  return idle.map((name) => `${name}: has no effect without OIDC_ISSUER; set both or neither`);
}

/** What the file of `MODELS_FILE` says in its own way. */
export const replacedByFile: readonly string[] = [
  "PROXY_UPSTREAM_URL",
  "PROXY_UPSTREAM_API_KEY",
  "PROXY_ALIAS_MODEL",
  "PROXY_ALIAS_REWRITE_ALL",
  "PROXY_FAMILY_MODEL",
  "PROXY_VENDOR_PREFIXES",
];

const besideFile = (environment: Environment): string[] =>
  replacedByFile
    .filter((name) => (environment[name] ?? "") !== "")
    .map((name) => `${name}: must not be set together with MODELS_FILE; use a member of the file`);
