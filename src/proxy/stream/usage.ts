import { addUsage, noUsage, type Usage } from "../../domain/usage.ts";
import {
  cachedTimingName,
  findCount,
  isObject,
  noStreamUsage,
  readEventUsage,
  usageOfStream,
  findShortJson,
  maxParsedLength,
  mayHoldUsage,
  mentionsUsage,
} from "./event-usage.ts";
import { dataOf } from "./events.ts";
import { LongText, type Progress } from "./flags.ts";
import type { Endpoint } from "../rewrite/endpoint.ts";

/** Sees every text of a response, parsed, in its order. */
interface TextObserver {
  /**
   * @param unreadBytes of one that is too long to be parsed, of which only the usage is known; else 0
   * @param json its text, if it is an event's
   */
  onDocument(document: unknown, unreadBytes: number, json?: Uint8Array): void;
  /** Takes whole events that mention no usage without parsing their texts. False: they are to be parsed. */
  skim?(events: Uint8Array): boolean;
}

/** What else is read of a response. */
export interface ResponseListener {
  observer?: TextObserver | undefined;
  /** Unset where the status tells how it went. */
  progress?: Progress | undefined;
}

/** Reads the usage of a stream's texts, each of which is JSON or holds nothing of interest, such as `[DONE]`. */
export class UsageReader {
  readonly #observer: TextObserver | undefined;
  readonly #progress: Progress | undefined;
  readonly #timings: ReturnType<typeof createTimings> | undefined;
  /** Of all that was read, with what it looks like. */
  usage = noStreamUsage;

  /** @param timedChoices see `UsageAdded` */
  constructor({ observer, progress }: ResponseListener, timedChoices?: number) {
    this.#observer = observer;
    this.#progress = progress;
    this.#timings = timedChoices === undefined ? undefined : createTimings(timedChoices);
  }

  /** @param bytes a whole event, or one that no empty line ends. @param isText it is a text by itself */
  read(bytes: Uint8Array, isText: boolean): void {
    if (isText) return this.#readText(bytes);
    this.#progress?.event(bytes);
    if (this.#timings !== undefined || mentionsUsage(bytes) || !this.skim(bytes)) this.#readText(dataOf(bytes));
  }

  #readText(json: Uint8Array): void {
    if (this.#observer === undefined && this.#timings === undefined && !mayHoldUsage(json)) return;
    const isLong = json.length > maxParsedLength;
    const document = findShortJson(json);
    if (document !== undefined) this.#add(document, 0, json, true);
    // One that was cut may still hold its usage.
    else if (isLong || mayHoldUsage(json))
      this.#add(new LongText(json, false).document(), isLong ? json.length : 0, json);
  }

  /** A text that was too long to be held; all of it was pushed. */
  longText(text: LongText): void {
    this.#progress?.document(text.document());
    this.#add(text.document(), text.length);
  }

  /** Takes whole events that mention no usage without reading their texts. False: they are to be read. */
  skim(events: Uint8Array): boolean {
    return this.#observer === undefined || this.#observer.skim?.(events) === true;
  }

  seen(): Usage {
    const usage = usageOfStream(this.usage);
    return this.#timings === undefined ? usage : this.#timings.addTo(usage);
  }

  /** @param json its text, if that is at hand. @param isWhole it has all that was sent, and not only what is read */
  #add(document: unknown, unreadBytes: number, json?: Uint8Array, isWhole = false): void {
    if (document === undefined) return;
    this.#observer?.onDocument(document, unreadBytes, json);
    this.#timings?.read(document);
    this.usage = readEventUsage(document, this.usage, isWhole);
  }
}

/** What llama.cpp counts of each choice as it runs; its usage is that of one. @param perPrompt how many have one prompt */
function createTimings(perPrompt: number) {
  const choices = new Map<number, Usage>();
  return {
    read(document: unknown): void {
      if (!isObject(document) || !isObject(document.timings) || !Array.isArray(document.choices)) return;
      const choice: unknown = document.choices[0];
      if (!isObject(choice) || typeof choice.index !== "number" || choices.size > 4096) return;
      const { timings } = document;
      const count = (name: string): number => findCount(timings, [name]) ?? 0;
      const cachedInputTokens = count(cachedTimingName);
      const inputTokens = count("prompt_n") + cachedInputTokens;
      choices.set(choice.index, { inputTokens, outputTokens: count("predicted_n"), cachedInputTokens });
    },
    /** @param usage what the backend reports otherwise */
    addTo(usage: Usage): Usage {
      let sum = noUsage;
      for (const choice of choices.values()) sum = addUsage(sum, choice);
      if (sum.outputTokens < usage.outputTokens || choices.size === 0) return usage;
      const inputTokens = Math.max(usage.inputTokens, Math.round(sum.inputTokens / perPrompt));
      const cachedInputTokens = Math.round((sum.cachedInputTokens ?? 0) / perPrompt) || usage.cachedInputTokens;
      return { ...usage, inputTokens, outputTokens: sum.outputTokens, cachedInputTokens };
    },
  };
}

/**
 * How a backend treats the usage of streams, as far as its responses have shown. In the memory of this process: what is
 * forgotten is learnt again, by one request more.
 */
export type UsageHabits = ReturnType<typeof createUsageHabits>;

/** The habits of each backend, by its name. */
export type HabitsOf = (backend: string) => UsageHabits;

export function createHabits(monotonic: () => number): HabitsOf {
  const known = new Map<string, UsageHabits>();
  return (backend) => known.getOrInsertComputed(backend, () => createUsageHabits(monotonic));
}

/** Then it is asked again: it may have been upgraded. */
const refusalMs = 60 * 60_000;

function createUsageHabits(monotonic: () => number) {
  const refusedAt = new Map<Endpoint, number>();
  const unasked = new Set<Endpoint>();
  return {
    /** It refused a request because of `stream_options`, and took the same one without. */
    refusesOptions: (endpoint: Endpoint): boolean => monotonic() - (refusedAt.get(endpoint) ?? -Infinity) < refusalMs,
    learnRefusal: (endpoint: Endpoint): void => void refusedAt.set(endpoint, monotonic()),
    /** It sends a frame of only usage although it is not asked to; the frame is then the client's. */
    sendsUnasked: (endpoint: Endpoint): boolean => unasked.has(endpoint),
    /** @param isSent whether a whole stream had such a frame, of a request that did not ask for it */
    learnUnasked(endpoint: Endpoint, isSent: boolean): void {
      if (isSent) unasked.add(endpoint);
      else unasked.delete(endpoint);
    },
  };
}
