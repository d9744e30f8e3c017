import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { now } from "../lib/server-clock.ts";
import { isMember, session } from "../lib/session.ts";
import { dayLabel, zonedClockLabel } from "../lib/time-labels.ts";
import { useStatesQuery } from "../queries.ts";
import { Icon } from "./icon.tsx";

/** The clock time of today, and the day before it of another day. */
export const momentLabel = (at: number): string =>
  dayLabel(at) === dayLabel(now()) ? zonedClockLabel(at) : `${dayLabel(at)}, ${zonedClockLabel(at)}`;

/** At the top of every page: the worst that is wrong, and how much more is. */
export function StatesLine(): JSX.Element {
  const states = useStatesQuery(() => session() !== undefined && !isMember());
  const loud = () => states.data?.states.filter(({ silenced }) => silenced === null) ?? [];
  return (
    <Show when={loud()[0]}>
      {(worst) => (
        <div class="notice" data-tone="error" role="status">
          <Icon name="warning" />
          <p>
            {worst().what}, since {momentLabel(Date.parse(worst().since))}{" "}
            <A href="/#states">{loud().length > 1 ? `and ${loud().length - 1} more` : "What to do"}</A>
          </p>
        </div>
      )}
    </Show>
  );
}
