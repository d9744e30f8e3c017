import type { JSX } from "solid-js";

/** Whether responses that run when a key is switched off or deleted end at once. */
export const EndRunningChoice = (props: {
  label: string;
  value: boolean;
  onChange: (value: boolean) => void;
}): JSX.Element => (
  <label class="choice">
    <input type="checkbox" checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />
    {props.label}
  </label>
);
