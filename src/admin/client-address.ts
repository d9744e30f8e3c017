import { isIP } from "node:net";

export interface Hops {
  /** The header X-Forwarded-For as it came; null where there is none. */
  forwardedFor: string | null;
  /** Who is at the other end of the connection. */
  socketAddress: string;
  /** How many reverse proxies in front each append the address that they saw. */
  trustedHops: number;
}

/**
 * The client as the outermost trusted proxy saw it: the last `trustedHops` entries are written by our own proxies,
 * everything before them by whoever likes to.
 */
export function clientAddress({ forwardedFor, socketAddress, trustedHops }: Hops): string {
  const connected = plainAddress(socketAddress) ?? socketAddress;
  if (trustedHops === 0 || forwardedFor === null) return connected;
  const entries = forwardedFor.split(",");
  // A shorter list came past the outer proxies; its first entry was written by one of the inner ones.
  const entry = entries[Math.max(0, entries.length - trustedHops)] ?? "";
  return plainAddress(entry.trim()) ?? connected;
}

/**
 * Who shares one limit of login attempts. One household or machine holds a whole /64 of IPv6 and may take another of
 * its addresses for every attempt.
 */
export function attemptScope(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.split("%", 1)[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  const behind = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length);
  const all = [...groups, ...Array<string>(zeros).fill("0"), ...behind];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}

/** Some proxies append the port; dual-stack sockets show IPv4 as IPv6. */
function plainAddress(text: string): string | undefined {
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1] ?? address;
  return isIP(mapped) === 0 ? undefined : mapped.toLowerCase();
}
