import { batch, createSignal, onCleanup } from "solid-js";
import { canBeKey, refusedKeyProblem } from "../client.ts";
import { type ChatProgress, createChatReader, errorMessage } from "./chat-stream.ts";

export interface PlaygroundRun {
  progress: ChatProgress;
  status: number | undefined;
  requestId: string | undefined;
  firstByteMs: number | undefined;
  durationMs: number | undefined;
  problem: string | undefined;
}

export const playgroundPath = "/v1/chat/completions";

/** One streamed request at a time, which ends with the calling component. */
export function usePlayground() {
  const [run, setRun] = createSignal<PlaygroundRun>();
  const [isRunning, setIsRunning] = createSignal(false);
  let controller = new AbortController();
  onCleanup(() => controller.abort());
  const update = (fields: Partial<PlaygroundRun>): void => void setRun((before) => before && { ...before, ...fields });
  return {
    run,
    isRunning,
    stop: () => controller.abort(),
    async send(key: string, body: string): Promise<void> {
      controller = new AbortController();
      const startedAt = performance.now();
      const elapsed = (): number => performance.now() - startedAt;
      batch(() => {
        setIsRunning(true);
        setRun(emptyRun());
      });
      try {
        await stream({ key, body, signal: controller.signal, elapsed, update });
      } catch {
        update({ problem: controller.signal.aborted ? "Stopped" : "The connection broke" });
      }
      batch(() => {
        update({ durationMs: elapsed() });
        setIsRunning(false);
      });
    },
  };
}

const emptyRun = (): PlaygroundRun => ({
  progress: createChatReader().progress(),
  status: undefined,
  requestId: undefined,
  firstByteMs: undefined,
  durationMs: undefined,
  problem: undefined,
});

async function stream(options: {
  key: string;
  body: string;
  signal: AbortSignal;
  elapsed: () => number;
  update: (fields: Partial<PlaygroundRun>) => void;
}): Promise<void> {
  const { key, body, signal, elapsed, update } = options;
  if (!canBeKey(key)) return update({ problem: refusedKeyProblem });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  // Without the session's cookie, which /v1 has no use for.
  const response = await fetch(playgroundPath, { method: "POST", headers, body, signal, credentials: "omit" });
  update({ status: response.status, requestId: response.headers.get("x-request-id") ?? undefined });
  if (!response.ok) return update({ problem: errorMessage(await response.text(), response.status) });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const chat = createChatReader();
  let isFirst = true;
  for (;;) {
    const piece = await reader?.read();
    if (piece === undefined || piece.done) break;
    if (isFirst) update({ firstByteMs: elapsed() });
    isFirst = false;
    if (chat.push(piece.value)) update({ progress: chat.progress(), problem: chat.progress().error });
  }
}
