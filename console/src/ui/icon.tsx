import type { JSX } from "solid-js";

/** Strokes on a 16 × 16 grid. */
const paths = {
  overview: "M2.5 2.5h4.5v6H2.5zM9 2.5h4.5v3.5H9zM9 8.5h4.5v5H9zM2.5 11h4.5v2.5H2.5z",
  keys: "M10.2 2.5a3.3 3.3 0 1 0 0 6.6 3.3 3.3 0 0 0 0-6.6zM7.8 8.2 2.5 13.5M4.6 11.4l1.7 1.7",
  requests: "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
  usage: "M3 13.5V9M6.4 13.5V5M9.7 13.5V7M13 13.5V2.5",
  gpus: "M4.5 4.5h7v7h-7zM6.8 6.8h2.4v2.4H6.8zM6 2v2.5M10 2v2.5M6 11.5V14M10 11.5V14M2 6h2.5M2 10h2.5M11.5 6H14M11.5 10H14",
  settings: "M2.5 4.5h7M12.5 4.5h1M2.5 11.5h1M6.5 11.5h7M11 3v3M5 10v3",
  help: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.2 6.4a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.8.6-.8 1.2M8 11.3v.2",
  auto: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  light:
    "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  dark: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
  plus: "M8 3v10M3 8h10",
  search: "M7 2.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4zM10.2 10.2l3.3 3.3",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  calendar: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.5v3M10.5 2.5v3",
  check: "M3 8.5l3.3 3.3L13 5",
  pencil: "M3 13l.7-2.8 7-7 2.1 2.1-7 7zM9.4 4.5l2.1 2.1",
  more: "M3 8a.4.4 0 1 0 0 .01M8 8a.4.4 0 1 0 0 .01M13 8a.4.4 0 1 0 0 .01",
  limits: "M2.5 11.5a5.5 5.5 0 1 1 11 0M8 11.5l2.6-4",
  trash: "M3 4.5h10M6.3 4.5v-2h3.4v2M4.3 4.5l.6 9h6.2l.6-9M6.8 7v4M9.2 7v4",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6M13.2 2.2v2.6h-2.6",
  download: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13.5h10",
  warning: "M8 2.5 14.2 13.3H1.8zM8 6.6v3M8 11.3v.2",
} as const;

export type IconName = keyof typeof paths;

/** Decoration next to text: screen readers skip it. */
export function Icon(props: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[props.name]} />
    </svg>
  );
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M8.5 10.5V20M5.5 20h6" />
      <path class="barrier" d="M3.5 11.6 20.5 5" />
    </svg>
  );
}
