import { For, type JSX, Show } from "solid-js";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { Panel } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { type Reconciliation, useReconciliationQuery } from "./backend-queries.ts";
import { NumberCell, Table } from "../ui/table.tsx";

const sourceNames: Readonly<Record<string, string>> = { vllm: "vLLM", sglang: "SGLang", llamacpp: "llama.cpp" };

const columns = [
  { label: "Generated", number: true },
  { label: "Counted output", number: true },
  { label: "Difference", number: true },
  { label: "Prompt", number: true, rank: "rank-2" },
  { label: "Counted input", number: true, rank: "rank-2" },
  { label: "Difference of prompts", number: true },
];

/** The backend's own token counters, compared with the counts, once they differ. */
export function ReconciliationPanel(): JSX.Element {
  const reconciliation = useReconciliationQuery();
  /** By backend where there is a file of models. */
  const rows = (): Row[] => {
    const { rows: ofAll = [], by_backend: ofBackends = [] } = reconciliation.data ?? {};
    return ofBackends.length > 0 ? ofBackends : ofAll;
  };
  const scroll = createInfiniteScroll(rows);
  return (
    <Show when={rows().some((row) => row.is_drifting) && reconciliation.data?.source}>
      {(source) => (
        <Panel
          title="Compared with the backend"
          hint={
            <>
              Token counters of {sourceNames[source()] ?? source()}
              <Show when={reconciliation.data?.checked_at}>
                {(at) => (
                  <>
                    , read <RelativeTime at={Date.parse(at())} />
                  </>
                )}
              </Show>
            </>
          }
        >
          <Table
            caption="Tokens by the backend’s counters and as counted, by day"
            class="sums"
            heads={["Day", ...columns, "State"]}
            rows={scroll.shown()}
          >
            {(row) => <DayRow row={row} />}
          </Table>
          <MoreRows scroll={scroll} />
          <p class="footnote">
            The difference comes from responses that were cut, from streams that report no usage, and from clients that
            reach the backend directly. For a request with <code>n</code> choices, vLLM and SGLang count the prompt for
            each of them, and llama.cpp reports one choice alone. On <code>/v1/messages</code>, input does not include
            what came from a cache. A day drifts if the difference of outputs is more than 1% and 10,000 tokens.
          </p>
        </Panel>
      )}
    </Show>
  );
}

type Row = Reconciliation["rows"][number] & { backend?: string };

function DayRow(props: { row: Row }): JSX.Element {
  const values = (): number[] => [
    props.row.generated_tokens,
    props.row.counted_output_tokens,
    props.row.difference,
    props.row.prompt_tokens,
    props.row.counted_input_tokens,
    props.row.prompt_difference,
  ];
  return (
    <tr>
      <th scope="row">
        {props.row.date} <span class="faint">{props.row.backend}</span>
      </th>
      <For each={values()}>{(value, index) => <NumberCell label="" {...columns[index()]} value={value} />}</For>
      <td data-label="State">
        <span class="badge" data-tone={props.row.is_drifting ? "warn" : "good"}>
          {props.row.is_drifting ? "Drifting" : "In line"}
        </span>
      </td>
    </tr>
  );
}
