import { type Accessor, createSignal, onCleanup } from "solid-js";

/** Whether the page is visible, until the calling component is removed. */
export function isPageVisible(): Accessor<boolean> {
  const [isVisible, setIsVisible] = createSignal(!document.hidden);
  const update = (): void => void setIsVisible(!document.hidden);
  document.addEventListener("visibilitychange", update);
  onCleanup(() => document.removeEventListener("visibilitychange", update));
  return isVisible;
}
