import { type Accessor, createSignal } from "solid-js";
import type { TimeSpan } from "../data/time-range.ts";

interface CursorOptions {
  span: () => TimeSpan;
  stepMs: () => number;
  /** How many steps there are. */
  length: () => number;
  /** The step under a horizontal position of the window, pixels. */
  stepAt: (clientX: number) => number;
  hasData: () => boolean;
  zoomed: () => boolean;
  onZoom: (zoom: TimeSpan | undefined) => void;
}

export interface Cursor {
  /** The step that is pointed at. */
  step: Accessor<number | undefined>;
  /** What a release or Enter would zoom to. */
  selection: () => TimeSpan | undefined;
  isSelecting: () => boolean;
  spanOf: (from: number, to: number) => TimeSpan;
  onPointerDown: (event: PointerEvent & { currentTarget: HTMLElement }) => void;
  onPointerMove: (event: PointerEvent) => void;
  onPointerUp: (event: PointerEvent) => void;
  onPointerLeave: () => void;
  onKeyDown: (event: KeyboardEvent) => void;
  clear: () => void;
}

/** A shorter drag is a click of an unsteady hand. */
const minDragPx = 6;

/** Pointing and selecting, by hand and by key. */
export function createCursor(options: CursorOptions): Cursor {
  const [step, setStep] = createSignal<number>();
  const [anchor, setAnchor] = createSignal<number>();
  let pressedX = 0;

  const spanOf = (from: number, to: number): TimeSpan => ({
    from: options.span().from + Math.min(from, to) * options.stepMs(),
    to: Math.min(options.span().from + (Math.max(from, to) + 1) * options.stepMs(), options.span().to),
  });
  const selection = (): TimeSpan | undefined => {
    const [from, to] = [anchor(), step()];
    return from === undefined || to === undefined || from === to ? undefined : spanOf(from, to);
  };
  const clear = (): void => {
    setAnchor(undefined);
    setStep(undefined);
  };
  const zoomToSelection = (): void => {
    const selected = selection();
    setAnchor(undefined);
    if (selected === undefined) return;
    setStep(undefined);
    options.onZoom(selected);
  };
  const moveToStep = (target: number, selects: boolean): void => {
    const at = step() ?? options.length() - 1;
    setAnchor(selects ? (anchor() ?? at) : undefined);
    setStep(Math.min(Math.max(target, 0), options.length() - 1));
  };

  return {
    step,
    selection,
    spanOf,
    clear,
    isSelecting: () => anchor() !== undefined,
    onPointerDown(event) {
      // Capturing the pointer would swallow the click on what an empty chart offers.
      if (event.button !== 0 || !options.hasData()) return;
      pressedX = event.clientX;
      setStep(options.stepAt(event.clientX));
      setAnchor(options.stepAt(event.clientX));
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => void setStep(options.stepAt(event.clientX)),
    onPointerUp(event) {
      if (Math.abs(event.clientX - pressedX) < minDragPx) setAnchor(undefined);
      zoomToSelection();
    },
    onPointerLeave() {
      if (anchor() === undefined) clear();
    },
    onKeyDown(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = targetOf(event.key, step(), options.length());
      if (target !== undefined) moveToStep(target, event.shiftKey);
      else if (event.key === "Enter" && selection() !== undefined) zoomToSelection();
      else if (event.key === "Escape" && step() !== undefined) clear();
      else if (event.key === "Escape" && options.zoomed()) options.onZoom(undefined);
      else return;
      event.preventDefault();
    },
  };
}

/** Where a key leads from a step; the first arrow finds the latest one. */
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
