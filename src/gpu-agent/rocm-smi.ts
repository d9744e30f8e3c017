import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { findMeasured, type ToolReading } from "./gpu-entry.ts";

/** Hosts whose ROCm is older than `amd-smi` are read with these; `rocm-smi --help` lists the flags. */
export const rocmSmiArguments = [
  "--showproductname",
  "--showpower",
  "--showtemp",
  "--showuse",
  "--showmeminfo",
  "vram",
  "--json",
];

const bytesPerMib = 1024 * 1024;

/** Cards by name (`card0`), and a `system` entry of another shape. All values of a card are strings. */
const Card = Type.Record(Type.String(), Type.Unknown());
type Card = Readonly<Record<string, unknown>>;

/** @throws SyntaxError if the text is not JSON */
export function rocmSmiReadings(text: string): ToolReading[] {
  const parsed: unknown = JSON.parse(text);
  if (!Value.Check(Card, parsed)) return [];
  return Object.entries(parsed)
    .flatMap(([name, card]) => {
      const index = /^card(\d{1,3})$/.exec(name)?.[1];
      return index === undefined || !Value.Check(Card, card) ? [] : [readingOf(Number(index), card)];
    })
    .toSorted((one, other) => one.index - other.index);
}

/** Labels differ by card and release: graphics package or socket, edge or junction, "Series" or "series". */
function readingOf(index: number, card: Card): ToolReading {
  const name = findText(card, /^card series$/i) ?? findText(card, /^device name$/i) ?? findText(card, /^card model$/i);
  return {
    index,
    name: name ?? "AMD GPU",
    power_draw_w: findNumber(card, /^(?!max).* power \(W\)$/i),
    temp_c: findNumber(card, /sensor edge\) \(C\)$/i) ?? findNumber(card, /sensor junction\) \(C\)$/i),
    memory_used_mb: inMib(findNumber(card, /^VRAM Total Used Memory \(B\)$/i)),
    memory_total_mb: inMib(findNumber(card, /^VRAM Total Memory \(B\)$/i)),
    utilization_pct: findNumber(card, /^GPU use \(%\)$/i),
  };
}

function findText(card: Card, label: RegExp): string | undefined {
  const value = Object.entries(card).find(([name]) => label.test(name))?.[1];
  return typeof value === "string" && value !== "N/A" ? value : undefined;
}

const findNumber = (card: Card, label: RegExp): number | undefined => findMeasured(findText(card, label));

function inMib(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / bytesPerMib;
}
