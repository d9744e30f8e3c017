export type Environment = Readonly<Record<string, string | undefined>>;

interface Settings {
  HOST: string;
  PORT: number;
  ADMIN_PORT?: number;
  PROCESSES: number | "auto";
  MAX_BODY_BYTES: number;
  MAX_HELD_BYTES: number;
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

/** @returns a line for each pair of settings, all allowed one by one, that exclude each other */
export function findContradictions(settings: Settings, environment: Environment): string[] {
  const isSet = (name: string): boolean => (environment[name] ?? "") !== "";
  const given = Object.keys(environment).filter(isSet);
  const besideFile = isSet("MODELS_FILE") ? replacedByFile.filter(isSet) : [];
  const { HOST, PORT, ADMIN_PORT, PROCESSES, MAX_BODY_BYTES, MAX_HELD_BYTES } = settings;
  const isOnSocket = HOST.startsWith("unix:");
  const isWrong: Readonly<Record<string, boolean>> = {
    [`ADMIN_PORT: "${ADMIN_PORT}" is not allowed; use another port than PORT, or leave it unset`]:
      ADMIN_PORT === PORT && PORT !== 0,
    "ADMIN_HOST: has no effect without ADMIN_PORT; set both or neither": isSet("ADMIN_HOST") && !isSet("ADMIN_PORT"),
    "TLS_CERT: must be set together with TLS_KEY": isSet("TLS_KEY") && !isSet("TLS_CERT"),
    "TLS_KEY: must be set together with TLS_CERT": isSet("TLS_CERT") && !isSet("TLS_KEY"),
    "PROCESSES: several processes cannot share a UNIX socket; use 1, or an address as HOST":
      isOnSocket && PROCESSES !== 1,
    "TLS_CERT: has no effect on a UNIX socket; leave it unset, or set ADMIN_PORT":
      isOnSocket && isSet("TLS_CERT") && !isSet("ADMIN_PORT"),
    "MAX_HELD_BYTES: must be at least four times MAX_BODY_BYTES, so that a key can send the largest body":
      MAX_BODY_BYTES * 4 > MAX_HELD_BYTES,
    "SECRET_KEY: must be set together with DATABASE_URL; use the same value for all instances":
      isSet("DATABASE_URL") && !isSet("SECRET_KEY"),
    "BACKUP_DIR: must not be set together with DATABASE_URL; use pg_dump for PostgreSQL":
      isSet("DATABASE_URL") && isSet("BACKUP_DIR"),
  };
  return [
    ...besideFile.map((name) => `${name}: must not be set together with MODELS_FILE; use a member of the file`),
    ...Object.keys(isWrong).filter((problem) => isWrong[problem]),
    ...signInContradictions(given),
  ];
}

function signInContradictions(given: readonly string[]): string[] {
  if (given.includes("OIDC_CLIENT_SECRET_FILE") && given.includes("OIDC_CLIENT_SECRET"))
    return ["OIDC_CLIENT_SECRET_FILE: must not be set together with OIDC_CLIENT_SECRET"];
  if (!given.includes("OIDC_ISSUER")) {
    const idle = given.filter((name) => /^OIDC_(CLIENT|ADMIN|VIEWER)_/.test(name));
    return idle.map((name) => `${name}: has no effect without OIDC_ISSUER; set both or neither`);
  }
  const needed = ["OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "ADMIN_URL"];
  const missing = needed.filter((name) => !given.includes(name) && !given.includes(`${name}_FILE`));
  return missing.map((name) => `${name}: must be set together with OIDC_ISSUER`);
}
