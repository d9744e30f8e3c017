import type { ToolReading } from "./gpu-entry.ts";

export interface SampleSets {
  add(reading: ToolReading): void;
  /** Hands on what has come so far, where no more will. */
  end(): void;
}

/**
 * Groups readings that come one by one, in rising order of index, into one set per turn of the tool.
 * A set ends when the last GPU of the turn before has come, when an index comes again, or after a silence.
 * The silence alone would make every set late, and the repetition a whole turn late; neither is missed when a GPU drops out.
 * @param silenceMs shorter than the pause between turns, longer than between two GPUs of one
 */
export function createSampleSets(silenceMs: number, onSet: (readings: ToolReading[]) => void): SampleSets {
  let pending: ToolReading[] = [];
  let lastIndexOfTurn: number | undefined;
  let silence: NodeJS.Timeout | undefined;

  function end(): void {
    clearTimeout(silence);
    if (pending.length === 0) return;
    const readings = pending;
    pending = [];
    lastIndexOfTurn = readings.at(-1)?.index;
    onSet(readings);
  }

  return {
    add(reading) {
      const previous = pending.at(-1);
      if (previous !== undefined && reading.index <= previous.index) end();
      pending.push(reading);
      if (reading.index === lastIndexOfTurn) return end();
      clearTimeout(silence);
      silence = setTimeout(end, silenceMs);
    },
    end,
  };
}
