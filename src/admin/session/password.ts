/** The setting that holds the admin password's argon2id hash. */
export const passwordHashSetting = "admin_password_hash";

/** OWASP's first recommendation for argon2id (Password Storage Cheat Sheet). */
const argon2id = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

export const hashPassword = (password: string): Promise<string> => Bun.password.hash(password, argon2id);

/** Runs off the main thread. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  try {
    return await Bun.password.verify(password, hash);
  } catch {
    // Not a valid hash: no password matches.
    return false;
  }
}

/** 32 characters that are not mistaken for one another when read aloud or copied by hand: 5 bits each, no bias. */
const alphabet = "abcdefghijkmnpqrstuvwxyz23456789";

/** 100 random bits, such as `k3vhs-w8dnq-xa2mr-7tepc`. */
export function generatePassword(): string {
  const text = Array.from(crypto.getRandomValues(new Uint8Array(20)), (byte) => alphabet[byte % alphabet.length]).join(
    "",
  );
  return (text.match(/.{5}/g) ?? []).join("-");
}
