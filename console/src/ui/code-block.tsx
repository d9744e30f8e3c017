import type { JSX } from "solid-js";
import { CopyButton } from "./copy-button.tsx";

/** Lines of code with their copy button. */
export const CodeBlock = (props: { text: string; what: string; onCopied?: () => void }): JSX.Element => (
  <div class="code-block">
    {/* A long line scrolls, also by keyboard. */}
    <pre tabindex="0" role="region" aria-label={props.what}>
      <code>{props.text}</code>
    </pre>
    <CopyButton text={props.text} what={props.what} {...(props.onCopied && { onCopied: props.onCopied })} />
  </div>
);
