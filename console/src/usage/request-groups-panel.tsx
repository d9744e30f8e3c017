import type { JSX } from "solid-js";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { GroupsPanel } from "../requests/groups-panel.tsx";
import { GroupSelect } from "../requests/group-select.tsx";
import type { Grouping, GroupsQuery } from "../requests/queries.ts";
import { findGrouping } from "../requests/request-groups.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { EmptyState } from "../ui/panel.tsx";
import { keyIdOf } from "./usage-buckets.ts";

const hourOptions = [
  { value: "1", label: "1 h" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 d" },
] as const;

/** Who asked what for, and what came from caches, by the request log. Of one key with a key in the URL. */
export function RequestGroupsPanel(): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"group" | "hours" | "key">();
  const by = (): Grouping => findGrouping(parameters.group) ?? "program";
  const hours = (): (typeof hourOptions)[number]["value"] =>
    hourOptions.find(({ value }) => value === parameters.hours)?.value ?? "24";
  const keyId = (): number | undefined => keyIdOf(parameters.key);
  const ofKey = (): { key?: string } => (keyId() === undefined ? {} : { key: String(keyId()) });
  const query = (): GroupsQuery => {
    const id = keyId();
    return { by: by(), hours: Number(hours()), ...(id !== undefined && { key_id: id }) };
  };
  return (
    <GroupsPanel
      title="Clients and caches"
      query={query()}
      href={(name, value) => `/requests?${new URLSearchParams({ ...ofKey(), [name]: value }).toString()}`}
      empty={<EmptyState title="No requests in these hours" />}
      actions={
        <>
          <GroupSelect
            value={by()}
            onChange={(group) => setParameters({ group: group === "program" ? undefined : group }, { replace: true })}
          />
          <SegmentedControl
            label="Hours of requests"
            options={hourOptions}
            value={hours()}
            onChange={(span) => setParameters({ hours: span === "24" ? undefined : span }, { replace: true })}
          />
        </>
      }
    />
  );
}
