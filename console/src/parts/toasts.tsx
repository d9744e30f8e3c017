import { createSignal, For, type JSX } from "solid-js";
import { Icon } from "./icon.tsx";

type Tone = "info" | "error";

interface Toast {
  text: string;
  tone: Tone;
}

const shownMs: Record<Tone, number> = { info: 4000, error: 10_000 };

const [toasts, setToasts] = createSignal<Toast[]>([]);

const dismiss = (toast: Toast): void => void setToasts((all) => all.filter((one) => one !== toast));

/** A line at the foot of the page, read out by screen readers. */
export function showToast(text: string, tone: Tone = "info"): void {
  const toast = { text, tone };
  setToasts((all) => [...all.slice(-2), toast]);
  setTimeout(() => dismiss(toast), shownMs[tone]);
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      <For each={toasts()}>
        {(toast) => (
          <div class="toast" data-tone={toast.tone}>
            <span>{toast.text}</span>
            <button class="icon-button" type="button" aria-label="Dismiss" onClick={() => dismiss(toast)}>
              <Icon name="close" />
            </button>
          </div>
        )}
      </For>
    </div>
  );
}
