import { tick } from "./simulated-response.ts";

/** One thing to do on the wire: write, wait for a tick, pause (possibly endlessly) or cut the connection. */
export type WireAction = string | Uint8Array | typeof tick | { pauseMs: number } | { cut: Cut };

/** "close" ends the connection with FIN, as a process that exits does; "reset" with RST, as one killed with bytes unread does. */
export type Cut = "close" | "reset";
