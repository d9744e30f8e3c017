import { addUsage, noUsage, type Usage } from "../../domain/usage.ts";
import { skipLeading } from "../json/bytes.ts";
import type { PushParser } from "../json/push-parser.ts";
import { type BodyKind, createDecompressor, type Decompressor } from "./body-kind.ts";
import { beginsEvents, dataOf, Events, type Position, Unfinished } from "./events.ts";
import type { EventFilter } from "./filter.ts";
import { carryOnlyContent, LongText, type Progress } from "./flags.ts";
import { HeldEnd, joined } from "./held-end.ts";
import {
  cachedTimingName,
  createUsageParser,
  findCount,
  findShortJson,
  isObject,
  maxParsedLength,
  mayHoldUsage,
  mentionsUsage,
  noStreamUsage,
  readEventUsage,
  readUsage,
  type UsageShape,
  usageOfStream,
} from "./usage.ts";

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
class UsageReader {
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
    if (!isText) this.#progress?.event(bytes);
    if (!isText && this.#timings === undefined && !mentionsUsage(bytes) && this.skim(bytes)) return;
    const json = isText ? bytes : dataOf(bytes);
    if (this.#observer === undefined && this.#timings === undefined && !mayHoldUsage(json)) return;
    const document = findShortJson(json);
    if (document !== undefined) return this.#add(document, 0, json, true);
    // One that was cut may still hold its usage.
    const isLong = json.length > maxParsedLength;
    if (!isLong && !mayHoldUsage(json)) return;
    const parser = createUsageParser();
    parser.push(json);
    this.#add(parser.document(), isLong ? json.length : 0, json);
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

interface PassageOptions {
  listener: ResponseListener | undefined;
  filter?: EventFilter | undefined;
}

const openBrace = 0x7b;
const nothing = new Uint8Array();

/**
 * What the bytes of a response pass on their way to the client, whatever they are; their usage is read on the way. It never
 * throws or rejects.
 *
 * An event stream is cut into its events. Each goes through the reader of usage, the filter and the held end; what that
 * lets go may be sent. Other bodies, and compressed ones, may be sent as they come.
 * - Bytes leave in their order: by `push`, then by `held.take`, then by `rest`.
 * - Of an event stream, an unfinished event waits, so that an error never follows half an event, and the event that ends
 *   the stream, so that no client sees an end that is not counted. At most `maxHeldEventBytes` of an event wait.
 * - Nothing here survives the process: what waits has not been sent, so the client sees a response without its end.
 */
export class Passage {
  readonly #listener: ResponseListener | undefined;
  readonly #filter: EventFilter | undefined;
  /** It is JSON lines. */
  readonly #isLines: boolean;
  readonly #way: "all as it comes" | "decoded on the side" | "plain";
  /** Undefined where nothing is to be decoded, or cannot be. */
  readonly #decompressor: Decompressor | undefined;
  /** Set if usage is read more slowly than bytes come: the next chunk should wait for it, so that nothing piles up. */
  backlog: Promise<void> | undefined;
  readonly #events: Events;
  readonly held = new HeldEnd();
  /** The text is an event stream that waits where it has to. Undefined: its first bytes tell. */
  #holds: boolean | undefined;
  /** What came while that is unknown. */
  readonly #start = new Unfinished();
  /** Undefined if no usage is read of events. */
  #usage: UsageReader | undefined;
  #isKnown = false;
  /** Set if the body is one JSON text, which its first byte tells, whatever its type. */
  #json: PushParser | undefined;
  #long: LongText | undefined;
  /** What no empty line ends, once the body has ended. */
  #last: Uint8Array = nothing;

  /**
   * Usage is read from event streams and JSON, compressed or not, on any path; other responses have none.
   * @param listener undefined: the usage is not read
   */
  constructor(kind: BodyKind, { listener, filter }: PassageOptions) {
    const { text, encodings, isPlain, isPlainEvents } = kind;
    this.#listener = listener;
    this.#filter = filter;
    this.#isLines = text === "lines";
    this.#events = new Events(this, this.#isLines ? "line feed" : "empty line");
    this.#holds = isPlainEvents || (kind.isSniffed && isPlain ? undefined : false);
    this.#usage = listener && new UsageReader(listener, filter?.timedChoices);
    const isRead = text !== undefined && (this.#holds !== false || listener !== undefined);
    this.#way = !isRead ? "all as it comes" : isPlain ? "plain" : "decoded on the side";
    if (this.#way !== "decoded on the side") return;
    this.#decompressor = createDecompressor(encodings, (chunk) => void this.#read(chunk));
  }

  /** @returns the bytes that may be sent now */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#way === "plain") return this.#read(chunk);
    this.backlog = this.#decompressor?.push(chunk);
    return chunk;
  }

  #read(bytes: Uint8Array): Uint8Array {
    const chunk = this.#isKnown ? bytes : this.#begin(bytes);
    this.#json?.push(chunk);
    if (this.#json !== undefined && !this.#holds) return chunk;
    if (this.#events.push(chunk)) return chunk;
    const ready = this.held.takeReady();
    if (this.#holds) return ready;
    this.held.take();
    return chunk;
  }

  /** The first bytes tell what the body is, where its type does not. @returns what is read now */
  #begin(bytes: Uint8Array): Uint8Array {
    const chunk = this.#start.take(bytes);
    this.#holds ??= beginsEvents(chunk);
    if (this.#holds === undefined) return this.#start.add(chunk) ?? nothing;
    const first = chunk[skipLeading(chunk, 0)];
    const mayBeJson = this.#usage !== undefined && !this.#isLines;
    this.#isKnown = !mayBeJson || first !== undefined;
    if (mayBeJson && first === openBrace) [this.#json, this.#usage] = [createUsageParser(), undefined];
    return chunk;
  }

  /** This and the next two are for the cutter alone. */
  run(events: Uint8Array): boolean {
    if (this.#isLines || this.#listener?.progress?.isAsked === true) return false;
    if (!carryOnlyContent(events) || this.#filter?.passes(events) === false) return false;
    return this.#usage === undefined || this.#usage.skim(events);
  }

  event(bytes: Uint8Array): void {
    this.#usage?.read(bytes, this.#isLines);
    if (this.#filter === undefined) return this.held.event(bytes);
    for (const event of this.#filter.event(bytes)) this.held.event(event);
  }

  piece(bytes: Uint8Array, isLast: boolean): void {
    for (const event of this.#filter?.release() ?? []) this.held.event(event);
    if (this.#long === undefined) this.#long = new LongText(bytes, !this.#isLines);
    else this.#long.push(bytes);
    if (!isLast) return this.held.pass(bytes);
    this.#usage?.longText(this.#long);
    this.held.lastPiece(bytes, this.#long.endsStream());
    this.#long = undefined;
  }

  /** Where in an event stream the next byte goes. */
  position(): Position {
    return this.held.waitsInLine ? "inside a line" : this.#events.position();
  }

  /** The usage of the events pushed so far; none while a JSON document is unfinished. */
  seen(): Usage {
    return this.#usage?.seen() ?? noUsage;
  }

  /** The usage of everything pushed, also if the response was cut short. Called once. */
  async end(): Promise<Usage> {
    if (this.#decompressor !== undefined) await this.#decompressor.end();
    this.#last = this.#holds === undefined ? this.#start.take(nothing) : this.#events.rest();
    if (this.#json !== undefined && this.#listener !== undefined) {
      return readDocument(this.#json.document(), this.#listener);
    }
    if (this.#last.length > 0) this.#usage?.read(this.#last, this.#isLines);
    else if (this.#long !== undefined) this.#usage?.longText(this.#long);
    return this.seen();
  }

  /** @returns what still waits, to be sent after `end`; asked before, because the body broke off, without the event that did */
  rest(): Uint8Array {
    if (this.#holds === false) return nothing;
    return this.#filter === undefined ? this.#last : joined(this.#filter.end(this.#last));
  }

  shape(): UsageShape {
    return this.#usage?.usage ?? noStreamUsage;
  }
}

function readDocument(document: unknown, { observer, progress }: ResponseListener): Usage {
  observer?.onDocument(document, 0);
  progress?.document(document);
  return readUsage(document, noUsage);
}

/** The usage of a whole response. */
export async function readWholeUsage(
  bytes: Uint8Array,
  kind: BodyKind,
  listener: ResponseListener = {},
): Promise<Usage> {
  const document = kind.isJson && kind.isPlain ? findShortJson(bytes) : undefined;
  if (document !== undefined) return readDocument(document, listener);
  const passage = new Passage(kind, { listener });
  passage.push(bytes);
  return passage.end();
}
