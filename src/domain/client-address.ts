import { isIP } from "node:net";

/**
 * @returns finds the client's address as the outermost trusted proxy saw it: our own proxies wrote the last `trustedHops`
 * entries of X-Forwarded-For, and anyone may have written those before
 */
export const clientAddressOf =
  (trustedHops: number) =>
  ({ headers }: Pick<Request, "headers">, socketAddress = ""): string => {
    const connected = plainAddress(socketAddress) ?? socketAddress;
    const entries = trustedHops === 0 ? undefined : headers.get("x-forwarded-for")?.split(",");
    // A shorter list means that the request bypassed the outer proxies; an inner one wrote the first entry.
    const entry = entries?.[Math.max(0, entries.length - trustedHops)] ?? "";
    return plainAddress(entry.trim()) ?? connected;
  };

/**
 * The addresses that share one limit on login attempts: a whole /64 of IPv6, since one household or machine holds it
 * and can use another address for each attempt.
 */
export function addressScope(address: string): string {
  return findNetwork(address, 4) ?? address;
}

/** The /48 of an IPv6 address: 65,536 networks that may have one owner. */
export function findWideScope(address: string): string | undefined {
  return findNetwork(address, 3);
}

/** The network of an IPv6 address that its first groups of 16 bits make. */
function findNetwork(address: string, groupCount: number): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const [head = "", tail] = address.split("%", 1)[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  const lastGroups = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - lastGroups.length);
  const all = [...groups, ...Array<string>(zeros).fill("0"), ...lastGroups];
  const network = all.slice(0, groupCount).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/${groupCount * 16}`;
}

/** Without the port that some proxies append; IPv4 as such, which dual-stack sockets show as IPv6. */
export function plainAddress(text: string): string | undefined {
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1] ?? address;
  return isIP(mapped) === 0 ? undefined : mapped.toLowerCase();
}
