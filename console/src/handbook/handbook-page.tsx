// The handbook as the console shows it: contents, one chapter, or what a search finds (`search.ts`). The chapters are
// the Markdown files here, which the build renders (`console/handbook.ts`). It knows no feature.

import { A, useLocation, useParams } from "@solidjs/router";
import { createEffect, createMemo, For, type JSX, Match, on, Show, Switch } from "solid-js";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { FilterField } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import type { Chapter } from "./chapter.ts";
import chapters from "./README.md";
import { type Hit, searchHandbook } from "./search.ts";
import "../styles/lazy-pages.css";

/** The handbook: its contents, one chapter, or what a search finds. */
export function HandbookPage(): JSX.Element {
  const params = useParams();
  const [url, setUrl] = useUrlParameters<"q">();
  const query = (): string => url.q?.trim() ?? "";
  const chapter = createMemo(() => chapters.find(({ name }) => name === params["chapter"]));
  return (
    <Page title={chapter()?.title ?? "Handbook"} sources={[]}>
      <SectionTabs section="help" label="Help" />
      <div class="handbook" classList={{ "is-chapter": chapter() !== undefined }}>
        <div class="handbook-side">
          <FilterField
            label="Search the handbook"
            value={url.q ?? ""}
            onInput={(q) => setUrl({ q: q === "" ? undefined : q }, { replace: true, scroll: false })}
          />
          <Contents />
        </div>
        <section class="panel" aria-label={query() === "" ? (chapter()?.title ?? "Contents") : "Found"}>
          <Switch fallback={<Summaries />}>
            <Match when={query() !== ""}>
              <Hits hits={searchHandbook(chapters, query())} />
            </Match>
            <Match when={chapter()}>{(shown) => <ChapterText chapter={shown()} />}</Match>
            <Match when={params["chapter"] !== undefined}>
              <EmptyState title="The handbook has no such chapter" />
            </Match>
          </Switch>
        </section>
      </div>
    </Page>
  );
}

export const chapterHref = (name: string, id = ""): string => `/help/handbook/${name}${id === "" ? "" : `#${id}`}`;

const Contents = (): JSX.Element => (
  <nav class="handbook-contents" aria-label="Chapters">
    <A href="/help/handbook" end>
      Contents
    </A>
    <For each={chapters}>{({ name, title }) => <A href={chapterHref(name)}>{title}</A>}</For>
  </nav>
);

const Summaries = (): JSX.Element => (
  <ul class="handbook-list">
    <For each={chapters}>
      {({ name, title, summary }) => (
        <li>
          <A href={chapterHref(name)}>{title}</A>
          <p>{summary}</p>
        </li>
      )}
    </For>
  </ul>
);

const Hits = (props: { hits: readonly Hit[] }): JSX.Element => (
  <Show when={props.hits.length > 0} fallback={<EmptyState title="Nothing found: try other words" />}>
    <ul class="handbook-list" aria-live="polite">
      <For each={props.hits}>
        {({ chapter, section, excerpt }) => (
          <li>
            <A href={chapterHref(chapter.name, section.id)}>{section.title || chapter.title}</A>{" "}
            <span class="faint">{section.title === "" ? "" : chapter.title}</span>
            <p>{excerpt}</p>
          </li>
        )}
      </For>
    </ul>
  </Show>
);

function ChapterText(props: { chapter: Chapter }): JSX.Element {
  const location = useLocation();
  // The router looks for the heading before this page's script has loaded.
  createEffect(
    on([() => props.chapter, () => location.hash], ([, hash]) => {
      if (hash !== "") document.querySelector(`#${CSS.escape(decodeURIComponent(hash.slice(1)))}`)?.scrollIntoView();
    }),
  );
  return (
    <article class="handbook-text">
      <For each={props.chapter.blocks}>
        {(block) =>
          "html" in block ? (
            // oxlint-disable-next-line solid/no-innerhtml -- The build has rendered it from the repository's own files.
            <div innerHTML={block.html} />
          ) : (
            <CodeBlock text={block.code.trimEnd()} what="the lines" />
          )
        }
      </For>
    </article>
  );
}
