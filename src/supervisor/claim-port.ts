import { listenError } from "../runtime/listen.ts";

/**
 * Reserves a port for the processes that will share it. Without this, the kernel lets any other program of the same user
 * share the port too, and a second copy of Tollgate would silently take half the connections. Linux only.
 * @throws ListenError if the port is in use
 */
export function claimPort(host: string, port: number): Disposable {
  try {
    // An abstract socket name: the kernel frees it when this process exits, and scopes it to the network namespace,
    // as it does with the port.
    const hash = new Bun.CryptoHasher("sha256").update(`${host} ${port}`).digest("hex");
    const name = Bun.listen({ unix: `\0tollgate-${hash}`, socket: { data() {} } });
    try {
      Bun.listen({ hostname: host, port, exclusive: true, socket: { data() {} } }).stop(true);
    } catch (error) {
      name.stop(true);
      throw error;
    }
    return { [Symbol.dispose]: () => name.stop(true) };
  } catch (error) {
    throw listenError(error, host, port);
  }
}
