import { type JSX, Show } from "solid-js";
import { RelativeTime } from "../ui/relative-time.tsx";
import { isFull, isHot, isStale } from "./gpu-state.ts";
import type { Gpu } from "./queries.ts";
import { useShownAt } from "./shown-at.ts";

/** What needs attention, in words, because not everyone can tell the colours apart. */
export function GpuNotes(props: { gpu: Gpu }): JSX.Element {
  const { at } = useShownAt();
  return (
    <Show when={!isStale(props.gpu, at())} fallback={<StaleNote gpu={props.gpu} />}>
      <Show when={isHot(props.gpu)}>
        <span class="gpu-note" data-tone="bad">
          Hot
        </span>
      </Show>
      <Show when={isFull(props.gpu)}>
        <span class="gpu-note">Full</span>
      </Show>
    </Show>
  );
}

const StaleNote = (props: { gpu: Gpu }): JSX.Element => (
  <span class="gpu-note">
    Stale
    <span class="gpu-note-time">
      {" "}
      · <RelativeTime at={Date.parse(props.gpu.recorded_at)} />
    </span>
  </span>
);
