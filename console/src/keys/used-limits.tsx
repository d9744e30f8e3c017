import { For, type JSX } from "solid-js";
import { compact, count } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { freesWhen, limitLabels, type LimitedKey, nearShare, usedLimits } from "./key-limits.ts";

/** A bar for each limit of a key: how much of it is used now, and when that frees again. */
export function UsedLimits(props: { key: LimitedKey }): JSX.Element {
  return (
    <ul class="used-limits">
      <For each={usedLimits(props.key)}>
        {({ name, used, reserved, estimated, limit, extra = 0 }) => (
          <li>
            <span>{limitLabels[name]}</span>
            <span title={`${count(used)} of ${count(limit)}`}>
              {compact(used)} of {compact(limit)}
            </span>
            <meter
              aria-label={limitLabels[name]}
              min={0}
              max={limit}
              high={limit * nearShare}
              optimum={0}
              value={Math.min(used, limit)}
            />
            <small>
              {freesWhen(name, now())}
              {extra > 0 && `, without ${compact(extra)} of the limit`}
              {reserved > 0 && `; ${compact(reserved)} reserved for running requests`}
              {estimated !== null && estimated > 0 && `; ${compact(estimated)} charged by an estimate`}
            </small>
          </li>
        )}
      </For>
    </ul>
  );
}
