import type { ToolReading } from "./gpu-entry.ts";

/**
 * Groups readings, which arrive one by one in rising order of index, into one set per round of the tool.
 * A set ends at the last GPU of the previous round, at an index that does not rise, or after a silence. The first rule
 * adds no delay; the other two cover a GPU that drops out.
 * @param silenceMs shorter than the pause between rounds, longer than the pause between two GPUs of one round
 */
export function createSampleSets(silenceMs: number, onSet: (readings: ToolReading[]) => void) {
  let pending: ToolReading[] = [];
  let lastIndexOfRound: number | undefined;
  let silence: NodeJS.Timeout | undefined;

  function end(): void {
    clearTimeout(silence);
    if (pending.length === 0) return;
    const readings = pending;
    pending = [];
    lastIndexOfRound = readings.at(-1)?.index;
    onSet(readings);
  }

  return {
    add(reading: ToolReading): void {
      const previous = pending.at(-1);
      if (previous !== undefined && reading.index <= previous.index) end();
      pending.push(reading);
      if (reading.index === lastIndexOfRound) return end();
      clearTimeout(silence);
      silence = setTimeout(end, silenceMs);
    },
    /** Passes on an unfinished set, when no more readings will come. */
    end,
  };
}
