import {
  type Component,
  createEffect,
  createSignal,
  type JSX,
  onCleanup,
  onMount,
  type ParentProps,
  Show,
} from "solid-js";
import { Dynamic } from "solid-js/web";
import { Button } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";
import { Page } from "./page.tsx";
import { EmptyState } from "./panel.tsx";

type Fallback<P> = (state: { hasFailed: boolean }, props: P) => JSX.Element;

/** The server may be back, or the network. */
const againMs = 5000;

/** A component whose script loads when it is first shown. Not with Suspense, which would detach the page at each refetch. */
export function lazyPart<P extends object>(load: () => Promise<Component<P>>, fallback: Fallback<P>): Component<P> {
  const [loaded, setLoaded] = createSignal<Component<P>>();
  const [hasFailed, setHasFailed] = createSignal(false);
  const start = async (): Promise<void> => {
    try {
      const component = await load();
      setLoaded(() => component);
      setHasFailed(false);
    } catch {
      setHasFailed(true);
    }
  };
  return (props) => {
    onMount(() => {
      if (loaded() === undefined) void start();
    });
    createEffect(() => {
      if (!hasFailed()) return;
      const again = setInterval(() => void start(), againMs);
      onCleanup(() => clearInterval(again));
    });
    return (
      <Show when={loaded()} fallback={fallback({ hasFailed: hasFailed() }, props)}>
        {(component) => <Dynamic component={component()} {...props} />}
      </Show>
    );
  };
}

/** A page of its own script. Its heading does not wait for it. */
export const lazyPage = (title: string, load: () => Promise<Component<ParentProps>>): Component<ParentProps> =>
  lazyPart(load, (state) => (
    <Page title={title} sources={[]}>
      <FailedPanel title={title} {...state} />
    </Page>
  ));

/** The last panels of a page, with a script of their own. Nothing until it has loaded. */
export const lazyPanels = (title: string, load: () => Promise<Component>): Component =>
  lazyPart(load, (state) => <FailedPanel title={title} {...state} />);

const FailedPanel = (props: { title: string; hasFailed: boolean }): JSX.Element => (
  <Show when={props.hasFailed}>
    <section class="panel" aria-label={props.title}>
      <LoadFailed />
    </section>
  </Show>
);

/** In place of a dialog. */
export const FailedDialog = (props: { hasFailed: boolean; title: string; onClose: () => void }): JSX.Element => (
  <Show when={props.hasFailed}>
    <Dialog title={props.title} onClose={props.onClose}>
      <LoadFailed />
    </Dialog>
  </Show>
);

/** After an upgrade of the server, an open tab asks for scripts that no longer exist. */
export const LoadFailed = (): JSX.Element => (
  <EmptyState title="This part of the console could not be loaded">
    <p>The server does not respond, or it was upgraded since this page was opened.</p>
    <Button onClick={() => location.reload()}>Reload the page</Button>
  </EmptyState>
);
