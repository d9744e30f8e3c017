import { createSignal, For, type JSX, onCleanup, onMount, Show } from "solid-js";
import { Button } from "./controls.tsx";

interface CopyProps {
  text: string;
  /** What is copied, for screen readers: `the key`. */
  what: string;
  primary?: boolean;
  onCopied?: () => void;
}

/** Copies a text, and confirms only after the copy succeeded. */
export function CopyButton(props: CopyProps): JSX.Element {
  const [outcome, setOutcome] = createSignal<"copied" | "failed">();
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));

  const copy = async (): Promise<void> => {
    const copied = await copyText(props.text);
    setOutcome(copied ? "copied" : "failed");
    if (copied) props.onCopied?.();
    clearTimeout(timer);
    timer = setTimeout(() => setOutcome(undefined), 2500);
  };

  return (
    <Button
      icon={outcome() === "copied" ? "check" : "copy"}
      tone={props.primary && "primary"}
      onClick={() => void copy()}
    >
      <span aria-live="polite">
        <Show when={outcome()} fallback="Copy">
          {outcome() === "copied" ? "Copied" : "Select and copy it manually"}
        </Show>
        <span class="visually-hidden"> {props.what}</span>
      </span>
    </Button>
  );
}

/** Over plain HTTP on a LAN name there is no `navigator.clipboard`; `execCommand` still works there. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  // While a dialog is open, everything outside it is inert.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  const focused = document.activeElement;
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}

/** A line of text with its copy button. */
export function CopyLine(props: CopyProps): JSX.Element {
  let code: HTMLElement | undefined;
  const selectAll = (): void => {
    if (code !== undefined) getSelection()?.selectAllChildren(code);
  };
  return (
    <div class="copy-line">
      <code ref={code} onClick={selectAll}>
        <For each={props.text.split(" ")}>
          {(word, index) => (
            <>
              {index() > 0 ? " " : ""}
              <span class="word">{word}</span>
            </>
          )}
        </For>
      </code>
      <CopyButton {...props} />
    </div>
  );
}

interface SecretProps {
  secret: string;
  what: string;
  /** What else the user has to know. */
  note?: string;
  isSaved?: boolean;
  onCopied?: () => void;
  onDone: () => void;
  /** How it is handed over. */
  children?: JSX.Element;
}

/** In a dialog that only the user closes: a secret that is shown only once. */
export function ShownOnce(props: SecretProps): JSX.Element {
  const [isCopied, setCopied] = createSignal(false);
  let lead: HTMLParagraphElement | undefined;
  onMount(() => lead?.focus());
  const copied = (): void => {
    setCopied(true);
    props.onCopied?.();
  };
  return (
    <>
      <p ref={lead} tabindex="-1" class="lead">
        Copy {props.what} now. Tollgate shows it only once; later it shows only a part of it. {props.note}
      </p>
      <CopyLine text={props.secret} what={props.what} primary onCopied={copied} />
      {props.children}
      <SavedButton isSaved={props.isSaved ?? isCopied()} onDone={props.onDone} />
    </>
  );
}

/** Closes the dialog of one secret or several. */
export const SavedButton = (props: { several?: boolean; isSaved: boolean; onDone: () => void }): JSX.Element => (
  <div class="dialog-actions">
    <Button tone={props.isSaved && "primary"} onClick={() => props.onDone()}>
      {props.isSaved ? "Done" : `I have saved ${props.several === true ? "them" : "it"}`}
    </Button>
  </div>
);
