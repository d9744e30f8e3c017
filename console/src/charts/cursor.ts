import { type Accessor, createSignal } from "solid-js";
import type { TimeSpan } from "../data/time-range.ts";

interface CursorOptions {
  span: () => TimeSpan;
  stepMs: () => number;
  /** The number of steps. */
  length: () => number;
  /** The step at a horizontal position in the window, pixels. */
  stepAt: (clientX: number) => number;
  hasData: () => boolean;
  zoomed: () => boolean;
  onZoom: (zoom: TimeSpan | undefined) => void;
}

export interface Cursor {
  /** The step under the pointer or the keyboard cursor. */
  step: Accessor<number | undefined>;
  /** The span that releasing the pointer or Enter zooms to. */
  selection: () => TimeSpan | undefined;
  spanOf: (from: number, to: number) => TimeSpan;
  onPointerDown: (event: PointerEvent & { currentTarget: HTMLElement }) => void;
  onPointerMove: (event: PointerEvent) => void;
  onPointerUp: (event: PointerEvent) => void;
  onPointerLeave: () => void;
  onKeyDown: (event: KeyboardEvent) => void;
  clear: () => void;
}

/** A shorter drag counts as a click. */
const minDragPx = 6;

/** A cursor and a selection, moved by pointer or keyboard. */
export function createCursor(options: CursorOptions): Cursor {
  const { step, selection, ...steps } = createSelection(options);
  let pressedX = 0;
  return {
    step,
    selection,
    spanOf: steps.spanOf,
    clear: steps.clear,
    onPointerDown(event) {
      // An empty chart does not capture the pointer, which would swallow clicks on its buttons.
      if (event.button !== 0 || !options.hasData()) return;
      pressedX = event.clientX;
      steps.startAt(options.stepAt(event.clientX));
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => steps.pointAt(options.stepAt(event.clientX)),
    onPointerUp(event) {
      if (Math.abs(event.clientX - pressedX) < minDragPx) steps.cancelSelection();
      steps.zoomToSelection();
    },
    onPointerLeave() {
      if (!steps.isSelecting()) steps.clear();
    },
    onKeyDown(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = targetOf(event.key, step(), options.length());
      if (target !== undefined) steps.moveTo(target, event.shiftKey);
      else if (event.key === "Enter" && selection() !== undefined) steps.zoomToSelection();
      else if (event.key === "Escape" && step() !== undefined) steps.clear();
      else if (event.key === "Escape" && options.zoomed()) options.onZoom(undefined);
      else return;
      event.preventDefault();
    },
  };
}

/** The selection reaches from the anchor, where it started, to the step under the cursor. */
function createSelection({ span, stepMs, length, onZoom }: CursorOptions) {
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
    cancelSelection: (): void => setAnchor(undefined),
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

/** The step that a key moves to; the first arrow key moves to the latest step. */
function targetOf(key: string, step: number | undefined, length: number): number | undefined {
  const at = step ?? length - 1;
  const page = Math.max(1, Math.round(length / 10));
  const targets: Readonly<Record<string, number>> = {
    ArrowLeft: step === undefined ? at : at - 1,
    ArrowRight: at + 1,
    PageUp: at - page,
    PageDown: at + page,
    Home: 0,
    End: length - 1,
  };
  return targets[key];
}
