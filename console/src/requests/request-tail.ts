import { type Accessor, createEffect, createSignal, onCleanup } from "solid-js";

export type TailState = "off" | "connecting" | "open" | "failed";

interface TailOptions<T> {
  /** Undefined: do not connect. */
  address: () => string | undefined;
  /** Called at each connection: what ended before it is in the log. */
  onOpen: () => void;
  onRequests: (requests: T[]) => void;
  onSkipped: (count: number) => void;
}

/** The browser does not reconnect by itself after an error response. */
const retryMs = 10_000;

/** The server-sent events of the request log, while the page is visible and until the calling component is removed. */
export function createRequestTail<T>(options: TailOptions<T>): () => TailState {
  const [state, setState] = createSignal<TailState>("off");
  const [attempt, setAttempt] = createSignal(0);
  const isVisible = isPageVisible();
  createEffect(() => {
    const address = isVisible() ? options.address() : undefined;
    attempt();
    setState(address === undefined ? "off" : "connecting");
    if (address === undefined) return;
    const source = new EventSource(address);
    let retryTimer: ReturnType<typeof setTimeout> | undefined;
    source.addEventListener("open", () => {
      setState("open");
      options.onOpen();
    });
    source.addEventListener("requests", ({ data }) => options.onRequests(JSON.parse(data) as T[]));
    source.addEventListener("skipped", ({ data }) => options.onSkipped((JSON.parse(data) as { count: number }).count));
    source.addEventListener("error", () => {
      const isClosed = source.readyState === EventSource.CLOSED;
      setState(isClosed ? "failed" : "connecting");
      if (isClosed) retryTimer = setTimeout(() => setAttempt((count) => count + 1), retryMs);
    });
    onCleanup(() => {
      clearTimeout(retryTimer);
      source.close();
    });
  });
  return state;
}

/** Whether the page is visible, until the calling component is removed. */
function isPageVisible(): Accessor<boolean> {
  const [isVisible, setIsVisible] = createSignal(!document.hidden);
  const update = (): void => void setIsVisible(!document.hidden);
  document.addEventListener("visibilitychange", update);
  onCleanup(() => document.removeEventListener("visibilitychange", update));
  return isVisible;
}
