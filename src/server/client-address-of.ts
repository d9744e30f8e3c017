import { clientAddress } from "../domain/client-address.ts";
import type { Config } from "../config/config.ts";

/** @returns finds a request's client: behind reverse proxies the address that the outermost trusted one saw */
export function clientAddressOf({ listen: { trustedHops: trustProxy } }: Config) {
  return (request: Request, peerAddress = ""): string =>
    clientAddress({
      forwardedFor: trustProxy === 0 ? null : request.headers.get("x-forwarded-for"),
      socketAddress: peerAddress,
      trustedHops: trustProxy,
    });
}
