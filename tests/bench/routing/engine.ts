import type { Timeline } from "./timeline.ts";

/** One turn of a conversation. Sizes are tokens, times are seconds. */
export interface Turn {
  session: number;
  conversation: number;
  /** The program whose instructions and tools the prompt begins with, and how long they are. */
  program: number;
  sharedTokens: number;
  promptTokens: number;
  outputTokens: number;
  /** Its response comes whole, so that nobody sees when the prompt was read. */
  isWhole: boolean;
  /** What the body's size is told in. */
  characters: number;
  arrivedAt: number;
}

/** A turn that an engine has, or waits for. */
export interface Job extends Turn {
  state: "waiting" | "reading" | "writing";
  /** When its prompt is read; known while it is being read. */
  readAt: number;
  onFirstToken: (cachedTokens: number) => void;
  onEnd: () => void;
}

export interface EngineOptions {
  tokensPerSecond: number;
  cacheTokens: number;
  /** Of a stream, alone. */
  outputPerSecond: number;
}

/** An engine with a prefix cache that forgets what was used least recently, and that reads one prompt at a time. */
export class Engine {
  isAway = false;
  writing = 0;
  readonly jobs = new Set<Job>();
  #life = 0;
  #isReading = false;
  /** Tokens by what they belong to, least recently used first. */
  readonly #cache = new Map<string, number>();
  #cached = 0;

  constructor(
    readonly options: EngineOptions,
    readonly timeline: Timeline,
  ) {}

  cachedOf({ conversation, program, promptTokens }: Turn): number {
    const shared = this.#cache.get(`program ${program}`) ?? 0;
    const own = shared > 0 ? (this.#cache.get(`conversation ${conversation}`) ?? 0) : 0;
    return Math.min(promptTokens - 1, shared + own);
  }

  take(job: Job): void {
    this.jobs.add(job);
    this.#readNext();
  }

  /** It is gone with all it has. @returns the jobs that it had */
  goAway(): Job[] {
    const lost = [...this.jobs];
    this.jobs.clear();
    this.#cache.clear();
    this.#cached = 0;
    this.#isReading = false;
    this.writing = 0;
    this.#life += 1;
    this.isAway = true;
    return lost;
  }

  /** Its cache is gone, and nobody sees it. */
  forget(): void {
    this.#cache.clear();
    this.#cached = 0;
  }

  #readNext(): void {
    if (this.#isReading) return;
    const job = this.jobs.values().find(({ state }) => state === "waiting");
    if (job === undefined) return;
    this.#isReading = true;
    const cached = this.cachedOf(job);
    this.#keep(job, 0);
    job.state = "reading";
    job.readAt = this.timeline.now + (job.promptTokens - cached) / this.options.tokensPerSecond;
    this.#at(job.readAt, () => {
      this.#isReading = false;
      this.#write(job, cached);
      this.#readNext();
    });
  }

  #write(job: Job, cached: number): void {
    job.state = "writing";
    this.writing += 1;
    job.onFirstToken(cached);
    const perSecond = Math.max(15, this.options.outputPerSecond / (1 + this.writing / 40));
    this.#at(this.timeline.now + job.outputTokens / perSecond, () => {
      this.writing -= 1;
      this.jobs.delete(job);
      this.#keep(job, job.outputTokens);
      job.onEnd();
    });
  }

  /** What was planned for an earlier life does not happen. */
  #at(time: number, happen: () => void): void {
    const life = this.#life;
    this.timeline.at(time, () => {
      if (life === this.#life) happen();
    });
  }

  #keep({ conversation, program, sharedTokens, promptTokens }: Turn, written: number): void {
    const own = [`program ${program}`, `conversation ${conversation}`] as const;
    for (const [name, tokens] of [
      [own[0], sharedTokens],
      [own[1], promptTokens - sharedTokens + written],
    ] as const) {
      const had = this.#cache.get(name) ?? 0;
      this.#cache.delete(name);
      this.#cache.set(name, Math.max(had, tokens));
      this.#cached += Math.max(0, tokens - had);
    }
    for (const [name, tokens] of this.#cache) {
      if (this.#cached <= this.options.cacheTokens) return;
      if (own.some((kept) => kept === name)) continue;
      this.#cache.delete(name);
      this.#cached -= tokens;
    }
  }
}
