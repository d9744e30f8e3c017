import type { JSX } from "solid-js";
import { splitName } from "./gpu-name.ts";

/** On one line. Without space for all of it, the beginning is cut and the end remains. */
export function GpuName(props: { name: string }): JSX.Element {
  const parts = (): ReturnType<typeof splitName> => splitName(props.name);
  return (
    <span class="gpu-name" title={props.name}>
      <span>{parts().head}</span>
      <span>{parts().tail}</span>
    </span>
  );
}
