import { listenError } from "../runtime/listen.ts";

/**
 * Keeps a port for the processes that are going to share it: the kernel would let any other program of this user share
 * it too, and the second copy of Tollgate would take half the connections of the first without a word. Linux only.
 * @throws ListenError where somebody has it
 */
export function claimPort(host: string, port: number): Disposable {
  try {
    // A name that the kernel holds as long as this process lives, and in the same network namespace as the port.
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
