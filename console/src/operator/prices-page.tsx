import { type BeforeLeaveEventArgs, useBeforeLeave } from "@solidjs/router";
import { createMemo, createSignal, For, Index, type JSX, onCleanup, onMount, Show } from "solid-js";
import { createStore, type SetStoreFunction } from "solid-js/store";
import { causeOf } from "../client.ts";
import { seoulDay } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { type Prices, usePricesToEditQuery } from "../queries.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Button, IconButton, LabelledInput } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { NotLoaded, Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import {
  draftOf,
  type ModelPriceDraft,
  modelPriceFields,
  newModelPrice,
  type PriceDraft,
  pricesOf,
} from "./price-draft.ts";
import { useSavePrices } from "./queries.ts";
import "../styles/lazy-pages.css";

/** Prices turn tokens into costs. Tokens without a price stay without a cost. */
export function PricesPage(): JSX.Element {
  const prices = usePricesToEditQuery();
  // Not those of the cache, which a save would bring back. Once the form is open, a failed refresh does not close it.
  const current = createMemo<Prices | undefined>(
    (before) => before ?? (prices.isFetchedAfterMount && prices.isSuccess ? prices.data : undefined),
  );
  // Otherwise a notice would say that the cache's are shown.
  const fetchedAt = (): number | undefined => (current() === undefined ? 0 : undefined);
  return (
    <Page
      title="Prices"
      help="watching#the-console"
      sources={[{ name: "Prices", query: prices, slow: true, fetchedAt: fetchedAt() }]}
    >
      <SectionTabs section="settings" label="Settings" />
      <Show
        when={current()}
        fallback={
          <section class="panel" aria-label="Prices">
            <Show when={prices.isError} fallback={<SkeletonList />}>
              <NotLoaded query={prices} />
            </Show>
          </section>
        }
      >
        {(loaded) => <PriceForm prices={loaded()} />}
      </Show>
    </Page>
  );
}

function PriceForm(props: { prices: Prices }): JSX.Element {
  const save = useSavePrices();
  // The form keeps what is typed, although the query may refetch.
  // oxlint-disable-next-line solid/reactivity
  const [draft, setDraft] = createStore<PriceDraft>(draftOf(props.prices));
  // oxlint-disable-next-line solid/reactivity
  const [saved, setSaved] = createSignal(draftOf(props.prices));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    save.mutate(pricesOf(draft), {
      onSuccess(prices) {
        setDraft(draftOf(prices));
        setSaved(draftOf(prices));
      },
    });
  };
  return (
    <form class="price-form" onSubmit={submit}>
      <UnsavedQuestion isUnsaved={() => JSON.stringify(draft) !== JSON.stringify(saved())} />
      <ModelPrices draft={draft} setDraft={setDraft} />
      <EnergyPrices draft={draft} setDraft={setDraft} />
      <div role="alert">
        <Show when={save.error}>{(error) => <p class="form-error">{causeOf(error())}.</p>}</Show>
      </div>
      <div class="actions">
        <Button tone="primary" type="submit" disabled={save.isPending}>
          Save prices
        </Button>
        <p class="hint">An exact name comes before a pattern, and a later day before an earlier one.</p>
      </div>
    </form>
  );
}

/** Asks before the page is left with changes: the console's own pages with a dialog, others with the browser's question. */
function UnsavedQuestion(props: { isUnsaved: () => boolean }): JSX.Element {
  const [leaving, setLeaving] = createSignal<BeforeLeaveEventArgs>();
  useBeforeLeave((event) => {
    if (event.defaultPrevented || !props.isUnsaved()) return;
    event.preventDefault();
    setLeaving(event);
  });
  const ask = (event: BeforeUnloadEvent): void => {
    if (props.isUnsaved()) event.preventDefault();
  };
  onMount(() => addEventListener("beforeunload", ask));
  onCleanup(() => removeEventListener("beforeunload", ask));
  return (
    <Show when={leaving()}>
      {(event) => (
        <ConfirmDialog
          title="Leave without saving the prices?"
          action="Leave"
          onConfirm={() => event().retry(true)}
          cancel="Stay"
          onClose={() => setLeaving(undefined)}
        >
          <p>What was changed in this form is lost.</p>
        </ConfirmDialog>
      )}
    </Show>
  );
}

interface DraftProps {
  draft: PriceDraft;
  setDraft: SetStoreFunction<PriceDraft>;
}

const today = (): string => seoulDay(serverNow());

function ModelPrices(props: DraftProps): JSX.Element {
  const addPrice = (): void =>
    props.setDraft("models", (all) => [...all, newModelPrice(all.length === 0 ? "*" : "", today())]);
  return (
    <Panel
      title="Models"
      hint="For a million tokens; * in a name stands for any characters"
      actions={<AddButton label="Add a model price" onClick={addPrice} />}
    >
      <div class="panel-body">
        <CurrencyField {...props} />
        <Index each={props.draft.models} fallback={<p class="hint">Without prices, the console shows tokens only.</p>}>
          {(price, index) => {
            const set = (field: keyof ModelPriceDraft) => (text: string) =>
              props.setDraft("models", index, field, text);
            return (
              <fieldset class="price-row">
                <legend class="visually-hidden">Price {index + 1}</legend>
                <LabelledInput
                  label="Model"
                  required
                  maxlength="200"
                  spellcheck={false}
                  value={price().pattern}
                  onText={set("pattern")}
                />
                <LabelledInput
                  label="Valid from"
                  type="date"
                  required
                  value={price().validFrom}
                  onText={set("validFrom")}
                />
                <For each={modelPriceFields}>
                  {({ field, label, isOptional }) => (
                    <PriceNumber label={label} isOptional={isOptional} value={price()[field]} onInput={set(field)} />
                  )}
                </For>
                <RemoveButton
                  label={`Remove price ${index + 1}`}
                  onClick={() => props.setDraft("models", (all) => all.toSpliced(index, 1))}
                />
              </fieldset>
            );
          }}
        </Index>
      </div>
    </Panel>
  );
}

const CurrencyField = (props: DraftProps): JSX.Element => (
  <LabelledInput
    label="Currency"
    class="filter-field currency"
    required={props.draft.models.length + props.draft.energy.length > 0}
    pattern="[A-Za-z]{3}"
    maxlength="3"
    placeholder="EUR"
    title="Three letters, such as EUR"
    value={props.draft.currency}
    onText={(text) => props.setDraft("currency", text)}
  />
);

function EnergyPrices(props: DraftProps): JSX.Element {
  const addPrice = (): void => props.setDraft("energy", (all) => [...all, { validFrom: today(), perKwh: "" }]);
  return (
    <Panel
      title="Energy"
      hint="For a kilowatt-hour of the GPUs"
      actions={<AddButton label="Add an energy price" onClick={addPrice} />}
    >
      <div class="panel-body">
        <Index each={props.draft.energy} fallback={<p class="hint">No energy price.</p>}>
          {(price, index) => (
            <fieldset class="price-row">
              <legend class="visually-hidden">Energy price {index + 1}</legend>
              <LabelledInput
                label="Valid from"
                type="date"
                required
                value={price().validFrom}
                onText={(text) => props.setDraft("energy", index, "validFrom", text)}
              />
              <PriceNumber
                label="Per kWh"
                value={price().perKwh}
                onInput={(text) => props.setDraft("energy", index, "perKwh", text)}
              />
              <RemoveButton
                label={`Remove energy price ${index + 1}`}
                onClick={() => props.setDraft("energy", (all) => all.toSpliced(index, 1))}
              />
            </fieldset>
          )}
        </Index>
      </div>
    </Panel>
  );
}

const AddButton = (props: { label: string; onClick: () => void }): JSX.Element => (
  <Button icon="plus" onClick={() => props.onClick()}>
    {props.label}
  </Button>
);

const RemoveButton = (props: { label: string; onClick: () => void }): JSX.Element => (
  <IconButton icon="trash" label={props.label} tone="danger" title={props.label} onClick={() => props.onClick()} />
);

const PriceNumber = (props: {
  label: string;
  isOptional?: boolean;
  value: string;
  onInput: (text: string) => void;
}): JSX.Element => (
  <LabelledInput
    label={props.label}
    type="number"
    min="0"
    max="1000000000"
    step="any"
    required={props.isOptional !== true}
    placeholder={props.isOptional === true ? "As input" : ""}
    value={props.value}
    onText={(text) => props.onInput(text)}
  />
);
