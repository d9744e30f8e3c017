import { createSignal, createUniqueId, For, type JSX, Show } from "solid-js";
import { Icon, type IconName } from "./icon.tsx";

interface PopoverProps {
  /** What the button is called. */
  label: string;
  icon?: IconName;
  /** What the button shows beside the icon. */
  text?: string;
  children: JSX.Element;
}

const gapPx = 4;

/** A button, and what it opens above everything else, so that no table cuts it. A click elsewhere or Escape closes it. */
export function Popover(props: PopoverProps): JSX.Element {
  const id = createUniqueId();
  const [place, setPlace] = createSignal<{ top: string; left: string; visibility: "hidden" | "visible" }>();
  let button: HTMLButtonElement | undefined;
  let popover: HTMLDivElement | undefined;
  const hide = (): void => popover?.hidePopover();
  const onToggle = (event: ToggleEvent): void => {
    removeEventListener("scroll", hide);
    setPlace(undefined);
    if (event.newState !== "open" || button === undefined || popover === undefined) return;
    setPlace({ top: "0", left: "0", visibility: "hidden" });
    // Below the button and in line with its right edge, as far as the window has space for that.
    const { bottom, right } = button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = popover;
    const [top, left] = [Math.min(bottom + gapPx, innerHeight - height - gapPx), Math.max(gapPx, right - width)];
    setPlace({ top: `${Math.max(0, top)}px`, left: `${left}px`, visibility: "visible" });
    addEventListener("scroll", hide, { once: true });
  };
  return (
    <>
      <button
        ref={button}
        class={props.text === undefined ? "icon-button" : "button"}
        type="button"
        popovertarget={id}
        aria-label={props.label}
        title={props.text === undefined ? props.label : undefined}
      >
        <Icon name={props.icon ?? "more"} />
        <Show when={props.text}>
          <span>{props.text}</span>
        </Show>
      </button>
      <div ref={popover} id={id} class="popover" popover="auto" style={place()} onToggle={onToggle}>
        <Show when={place()}>{props.children}</Show>
      </div>
    </>
  );
}

export interface MenuItem {
  label: string;
  /** Cannot be undone. */
  danger?: boolean;
  onSelect: () => void;
}

/** What can be done with a thing, behind one button. */
export const Menu = (props: Omit<PopoverProps, "children"> & { items: readonly MenuItem[] }): JSX.Element => (
  <Popover {...props}>
    <For each={props.items}>
      {(item) => (
        <button
          class="menu-item"
          classList={{ danger: item.danger ?? false }}
          type="button"
          onClick={(event) => {
            // The focus goes back to the menu's button, from which a dialog takes it.
            event.currentTarget.closest<HTMLElement>("[popover]")?.hidePopover();
            item.onSelect();
          }}
        >
          {item.label}
        </button>
      )}
    </For>
  </Popover>
);
