import type { JSX } from "solid-js";
import type { UsageSums } from "./usage-sums.ts";
import { UsageCells } from "./usage-cells.tsx";

interface LegendRowProps {
  name: string;
  colour: number;
  sums: UsageSums;
  /** Whether the chart shows it. */
  shown: boolean;
  /** Whether the chart shows nothing else. */
  isOnly: boolean;
  onToggle: () => void;
  onShowOnly: () => void;
  children?: JSX.Element;
}

/** The box shows or hides one part of the chart. Its name shows only that part; with a modifier it hides the part, too. */
export function LegendRow(props: LegendRowProps): JSX.Element {
  const activate = (event: MouseEvent | KeyboardEvent): void => {
    if (hasModifier(event)) props.onToggle();
    else props.onShowOnly();
  };
  return (
    <tr classList={{ off: !props.shown }}>
      <th scope="row">
        <div class="legend-key">
          <input
            type="checkbox"
            class={`series-${props.colour}`}
            checked={props.shown}
            aria-label={props.name}
            onChange={() => props.onToggle()}
          />
          <button
            class="legend-name"
            type="button"
            aria-pressed={props.isOnly}
            title={`${props.name}\nClick: show only this one. With Ctrl, Shift or ⌘: hide it.`}
            onClick={activate}
            onKeyDown={(event) => {
              // Browsers do not click for Enter with every modifier.
              if (event.key !== "Enter" || !hasModifier(event)) return;
              event.preventDefault();
              activate(event);
            }}
          >
            {props.name}
          </button>
          {props.children}
        </div>
      </th>
      <UsageCells sums={props.sums} />
    </tr>
  );
}

const hasModifier = ({ ctrlKey, metaKey, shiftKey, altKey }: MouseEvent | KeyboardEvent): boolean =>
  ctrlKey || metaKey || shiftKey || altKey;
