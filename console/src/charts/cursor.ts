import { createSignal } from "solid-js";
import { serverNow } from "../lib/server-clock.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { createSelection } from "./selection.ts";
import { scaledSpan, shiftedSpan } from "./span.ts";

interface CursorOptions {
  span: () => TimeSpan;
  stepMs: () => number;
  /** The number of steps. */
  length: () => number;
  stepPx: () => number;
  /** The step at a horizontal position in the window, pixels. */
  stepAt: (clientX: number) => number;
  hasData: () => boolean;
  /** Undefined: it does not pan. */
  zoomed: () => boolean | undefined;
  onZoom: (zoom: TimeSpan | undefined) => void;
}

/** A shorter drag counts as a click or a tap. */
const minDragPx = 6;

export type Cursor = ReturnType<typeof createCursor>;

/** A cursor and a selection, moved by mouse, touch or keyboard. */
export function createCursor(options: CursorOptions) {
  const { step, selection, ...steps } = createSelection(options);
  const touch = createTouch(options, steps.pointAt);
  let pressedX = 0;
  return {
    step,
    selection,
    /** How far a drag on a touch screen has moved the chart, pixels. */
    panPx: touch.panPx,
    spanOf: steps.spanOf,
    clear: steps.clear,
    /** @param factor of the length of the span; around the step under the cursor */
    zoomBy(factor: number): void {
      const { span, stepMs, onZoom } = options;
      const at = step();
      const middle = at === undefined ? (span().from + span().to) / 2 : span().from + (at + 0.5) * stepMs();
      onZoom(scaledSpan(span(), factor, { middle, stepMs: stepMs(), now: serverNow() }));
      steps.clear();
    },
    onPointerDown(event: PointerEvent & { currentTarget: HTMLElement }): void {
      // An empty chart does not capture the pointer, which would swallow clicks on its buttons.
      if (event.button !== 0 || !options.hasData()) return;
      if (isTouch(event)) return touch.press(event.clientX);
      pressedX = event.clientX;
      steps.startAt(options.stepAt(event.clientX));
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove(event: PointerEvent): void {
      if (isTouch(event)) touch.move(event.clientX);
      else steps.pointAt(options.stepAt(event.clientX));
    },
    onPointerUp(event: PointerEvent): void {
      if (isTouch(event)) return touch.release(event.clientX);
      if (Math.abs(event.clientX - pressedX) < minDragPx) steps.cancelSelection();
      steps.zoomToSelection();
    },
    onPointerLeave(event: PointerEvent): void {
      // What a tap shows stays until the next tap.
      if (!isTouch(event) && !steps.isSelecting()) steps.clear();
    },
    onPointerCancel(event: PointerEvent): void {
      if (isTouch(event)) touch.cancel();
      else steps.clear();
    },
    onKeyDown(event: KeyboardEvent): void {
      if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
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

const isTouch = (event: PointerEvent): boolean => event.pointerType === "touch";

/** A tap points at a step; a sideways drag moves the span. The browser takes vertical drags and scrolls. */
function createTouch(options: CursorOptions, pointAt: (step: number) => void) {
  const [panPx, setPanPx] = createSignal(0);
  let pressedX: number | undefined;
  const dragPx = (clientX: number): number => {
    const px = clientX - (pressedX ?? clientX);
    return options.zoomed() !== undefined && Math.abs(px) >= minDragPx ? px : 0;
  };
  return {
    panPx,
    press: (clientX: number): void => void (pressedX = clientX),
    move: (clientX: number): void => void setPanPx(dragPx(clientX)),
    release(clientX: number): void {
      if (pressedX === undefined) return;
      const steps = Math.round(dragPx(clientX) / options.stepPx());
      const isTap = Math.abs(clientX - pressedX) < minDragPx;
      pressedX = undefined;
      setPanPx(0);
      const { span, stepMs, onZoom } = options;
      if (isTap) return pointAt(options.stepAt(clientX));
      const moved = shiftedSpan(span(), -steps, { stepMs: stepMs(), now: serverNow() });
      if (moved.from !== span().from) onZoom(moved);
    },
    cancel(): void {
      pressedX = undefined;
      setPanPx(0);
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
