import { createSignal, Index, type JSX, Show } from "solid-js";
import { count, duration } from "../lib/format.ts";
import { hourMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { type States, useSilence, useStatesQuery } from "../queries.ts";
import { Button, LabelledInput, LabelledSelect } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Panel } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { momentLabel } from "../ui/states-line.tsx";

type State = States["states"][number];

/** What is wrong, since when and what mends it. */
export function StatesPanel(): JSX.Element {
  const states = useStatesQuery();
  const [asked, setAsked] = createSignal<State>();
  return (
    <Show when={states.data?.states.length ? states.data : undefined}>
      {(data) => (
        <div id="states">
          <Panel
            title="What is wrong"
            query={states}
            hint={
              data().unknown_since &&
              `Of other processes not known since ${momentLabel(Date.parse(data().unknown_since ?? ""))}`
            }
          >
            <ul class="states">
              <Index each={data().states}>
                {(state) => <StateItem state={state()} onSilence={() => setAsked(state())} />}
              </Index>
            </ul>
          </Panel>
          <Show when={asked()}>{(state) => <SilenceDialog state={state()} onClose={() => setAsked(undefined)} />}</Show>
        </div>
      )}
    </Show>
  );
}

/** What was wrong in the last 30 days. */
export const PastStates = (props: { past: States["past"] }): JSX.Element => (
  <Show when={props.past.length > 0}>
    <details class="states" id="past">
      <summary>What was wrong in the last 30 days ({count(props.past.length)})</summary>
      <ul>
        <Index each={props.past}>
          {(past) => (
            <li>
              {past().what}{" "}
              <span class="faint">
                {momentLabel(Date.parse(past().since))}, for{" "}
                {duration(Date.parse(past().until) - Date.parse(past().since))}
                {past().instance === null ? "" : `, ${past().instance}`}
              </span>
            </li>
          )}
        </Index>
      </ul>
    </details>
  </Show>
);

function StateItem(props: { state: State; onSilence: () => void }): JSX.Element {
  return (
    <li classList={{ faint: props.state.silenced !== null }} data-kind={props.state.kind}>
      <p>
        <b>{props.state.what}</b> since {momentLabel(Date.parse(props.state.since))} (
        <RelativeTime at={Date.parse(props.state.since)} />)
        {props.state.instance === null ? "" : ` · ${props.state.instance}`}
      </p>
      <p>
        {props.state.remedy} <HandbookLink to="watching#what-is-wrong">Handbook</HandbookLink>
      </p>
      <Show when={props.state.silenced} fallback={<Button onClick={() => props.onSilence()}>Silence</Button>}>
        {(silenced) => (
          <p>
            Silenced until {momentLabel(Date.parse(silenced().until))} by {silenced().by}: {silenced().why}
          </p>
        )}
      </Show>
    </li>
  );
}

/** In hours. */
const lengths = [
  { value: "1", label: "an hour" },
  { value: "24", label: "a day" },
  { value: "168", label: "a week" },
];

function SilenceDialog(props: { state: State; onClose: () => void }): JSX.Element {
  const silence = useSilence();
  const [hours, setHours] = createSignal("24");
  const [why, setWhy] = createSignal("");
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const { kind, instance } = props.state;
    const until = new Date(serverNow() + Number(hours()) * hourMs).toISOString();
    silence.mutate(
      { kind, ...(instance !== null && { instance }), until, why: why() },
      { onSuccess: () => props.onClose() },
    );
  };
  return (
    <Dialog title={`Silence: ${props.state.what}`} onClose={() => props.onClose()}>
      <form onSubmit={submit}>
        <p>No alert and no notice tells of it until then. If it goes and comes again, it is told again.</p>
        <LabelledSelect label="For" class="field" options={lengths} value={hours()} onChange={setHours} />
        <LabelledInput label="Why" class="field" required maxlength={300} value={why()} onText={setWhy} />
        <FormEnd action="Silence" isPending={silence.isPending} onCancel={props.onClose} />
      </form>
    </Dialog>
  );
}
