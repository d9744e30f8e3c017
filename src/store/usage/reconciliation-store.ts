/** The backend's own token counters, since its start, at one moment. */
export interface BackendSample {
  source: string;
  /** Epoch milliseconds. */
  at: number;
  generatedTokens: number;
  promptTokens: number;
  /** When its process started, if it reports that. It identifies the process, which has its own counters. */
  startedAt?: number | undefined;
  /** The backend did not respond since the last sample: it may have restarted, and generated more than before. */
  afterMiss?: boolean;
}

/** What a backend processed on a day in Seoul, and what was counted for it in the same minutes. */
export interface ReconciledDay {
  /** A day number. */
  day: number;
  generatedTokens: number;
  promptTokens: number;
  countedOutputTokens: number;
  countedInputTokens: number;
}

export interface ReconciliationStore {
  /**
   * Adds what came since the last sample, unless the backend may have restarted or be another one, or the last sample is
   * ten minutes old. A sample less than half a minute after the last one is ignored.
   */
  add(sample: BackendSample): Promise<void>;
  /** From a day on, latest first. */
  days(sinceDay: number): Promise<ReconciledDay[]>;
  lastSample(): Promise<BackendSample | undefined>;
}
