import { createSignal } from "solid-js";
import type { TimeSpan } from "../lib/time-range.ts";

interface SelectionOptions {
  span: () => TimeSpan;
  stepMs: () => number;
  /** The number of steps. */
  length: () => number;
  onZoom: (zoom: TimeSpan) => void;
}

/** The selection reaches from the anchor, where it started, to the step under the cursor. */
export function createSelection({ span, stepMs, length, onZoom }: SelectionOptions) {
  const [step, setStep] = createSignal<number>();
  const [anchor, setAnchor] = createSignal<number>();

  const spanOf = (from: number, to: number): TimeSpan => ({
    from: span().from + Math.min(from, to) * stepMs(),
    to: Math.min(span().from + (Math.max(from, to) + 1) * stepMs(), span().to),
  });
  const selection = (): TimeSpan | undefined => {
    const [from, to] = [anchor(), step()];
    return from === undefined || to === undefined || from === to ? undefined : spanOf(from, to);
  };
  return {
    step,
    selection,
    spanOf,
    isSelecting: () => anchor() !== undefined,
    pointAt: (target: number): void => void setStep(target),
    startAt(target: number): void {
      setStep(target);
      setAnchor(target);
    },
    moveTo(target: number, selects: boolean): void {
      const at = step() ?? length() - 1;
      setAnchor(selects ? (anchor() ?? at) : undefined);
      setStep(Math.min(Math.max(target, 0), length() - 1));
    },
    cancelSelection: () => setAnchor(undefined),
    zoomToSelection(): void {
      const selected = selection();
      setAnchor(undefined);
      if (selected === undefined) return;
      setStep(undefined);
      onZoom(selected);
    },
    clear(): void {
      setAnchor(undefined);
      setStep(undefined);
    },
  };
}
