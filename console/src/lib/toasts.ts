import { createSignal } from "solid-js";

type Tone = "info" | "error";

interface Toast {
  text: string;
  tone: Tone;
  /** Takes back what the message reports. */
  undo?: (() => void) | undefined;
}

const visibleMs: Record<Tone, number> = { info: 4000, error: 10_000 };
/** Long enough to read the message and decide. */
const undoMs = 10_000;

const [toasts, setToasts] = createSignal<Toast[]>([]);
export { toasts };

export const dismissToast = (toast: Toast): void => void setToasts((all) => all.filter((other) => other !== toast));

/** Shows a message at the foot of the page for some seconds. At most three are visible. */
export function showToast(text: string, tone: Tone = "info", undo?: () => void): void {
  const toast = { text, tone, undo };
  setToasts((all) => [...all.slice(-2), toast]);
  setTimeout(() => dismissToast(toast), undo === undefined ? visibleMs[tone] : undoMs);
}
