import type { tick } from "./answer.ts";

/** One thing that happens on the wire. Pauses may be endless. */
export type WireAction = string | Uint8Array | typeof tick | { pauseMs: number } | { cut: Cut };

/** "close" ends as a process that exits does (FIN), "reset" as one that is killed with bytes unread (RST). */
export type Cut = "close" | "reset";
