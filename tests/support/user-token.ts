const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token of a user as Open WebUI signs it. */
export function tokenOf(claims: object, secret: string, head: object = { alg: "HS256", typ: "JWT" }): string {
  const exp = Math.floor(Date.now() / 1000) + 300;
  const signed = `${base64(head)}.${base64({ iss: "open-webui", exp, ...claims })}`;
  return `${signed}.${new Bun.CryptoHasher("sha256", secret).update(signed).digest("base64url")}`;
}
