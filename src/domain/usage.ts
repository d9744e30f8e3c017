import { type KeyId, type SubjectId, subjectOf, type TeamId, type UserId } from "./keys.ts";

/**
 * The counters of a response. Each has a column in the tables of usage by model and in the request log. A new one also
 * needs its name at the backend (`proxy/stream/usage.ts`), in the API and in the console, and migrations.
 */
export const usageTotals = ["inputTokens", "outputTokens"] as const;
/** Each counts a part of a total. */
export const usageParts = ["cachedInputTokens", "reasoningTokens"] as const;
export const usageFields = [...usageTotals, ...usageParts] as const;

type UsageTotal = (typeof usageTotals)[number];
export type UsagePart = (typeof usageParts)[number];
export type UsageField = UsageTotal | UsagePart;

const totalsOfParts: Readonly<Record<UsagePart, UsageTotal>> = {
  // What the backend took from its cache.
  cachedInputTokens: "inputTokens",
  // What was spent on thinking.
  reasoningTokens: "outputTokens",
};

/** In the order of lists: parts follow their total. */
export const listedUsageFields: readonly UsageField[] = usageTotals.flatMap((total) => [
  total,
  ...usageParts.filter((part) => totalsOfParts[part] === total),
]);

/** Tokens of one response, as the backend reports them. A part is unset if there is none, or if it is not reported. */
export interface Usage extends Record<UsageTotal, number>, Partial<Record<UsagePart, number | undefined>> {}

/** What limits of tokens are charged beside the counted input and output. Unset: nothing. */
export const chargeFields = ["besideTokens", "estimatedTokens"] as const;

/**
 * `besideTokens` is all of it: cached input that is no part of the input, choices that the counts leave out, and the
 * estimate. `estimatedTokens` is the part of it that no backend reported.
 */
export type Charge = Record<(typeof chargeFields)[number], number>;

/** What is counted of a response: also how much of the cached input is not part of the input, as on `/v1/messages`. */
export interface CountedUsage extends Usage, Partial<Record<keyof Charge, number | undefined>> {
  cachedBesideInputTokens?: number | undefined;
}

/** All that a backend had to have of the input, whatever its dialect calls input. */
export const wholeInput = ({ inputTokens, cachedBesideInputTokens = 0 }: CountedUsage): number =>
  inputTokens + cachedBesideInputTokens;

/** What of the input came from the backend's cache, as far as it reports that. */
export const cachedTokensOf = ({ cachedInputTokens = 0 }: Usage): number => cachedInputTokens;

/** The input that a backend reports, in tokens. */
export interface ReportedInput {
  tokens: number;
  cached: number;
}

/** @returns undefined if no input is reported */
export function reportedInputOf(usage: CountedUsage | undefined): ReportedInput | undefined {
  const tokens = usage === undefined ? 0 : wholeInput(usage);
  return usage === undefined || tokens === 0 ? undefined : { tokens, cached: cachedTokensOf(usage) };
}

/** What limits of tokens are charged. */
export const chargedTokens = ({ inputTokens, outputTokens, besideTokens = 0 }: CountedUsage): number =>
  inputTokens + outputTokens + besideTokens;

export const countedParts = [...usageParts, "cachedBesideInputTokens"] as const;
export const countedFields = [...usageTotals, ...countedParts] as const;
export type CountedField = (typeof countedFields)[number];

/** Leaves none out. */
type EachOf<Field extends CountedField> = Record<Field, number | undefined>;

/** `inputTokens` is `input_tokens`. */
export type SnakeCase<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Text;
export const snakeCase = <Text extends string>(text: Text): SnakeCase<Text> =>
  text.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) as SnakeCase<Text>;

/** One value for each of the counters. */
export const mapCounters = <Field extends string, Value>(
  fields: readonly Field[],
  valueOf: (field: Field) => Value,
): Record<Field, Value> => Object.fromEntries(fields.map((field) => [field, valueOf(field)])) as Record<Field, Value>;

type ValueOfEach<List extends readonly unknown[], Value> = { [At in keyof List]: Value };

/** The same as a list, in the order of `usageFields`. */
export const listCounters = <Value>(valueOf: (field: UsageField) => Value): ValueOfEach<typeof usageFields, Value> =>
  usageFields.map(valueOf) as readonly Value[] as ValueOfEach<typeof usageFields, Value>;

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 };

/** The counters alone. */
export function pickUsage(usage: Usage): Usage {
  const picked = { ...noUsage };
  for (const total of usageTotals) picked[total] = usage[total];
  for (const part of usageParts) picked[part] = usage[part];
  return picked;
}

/**
 * The counters alone. Spelled out, like `createIncrement`: each response comes by, and a loop takes several times as long.
 * @param isCacheApart whether the backend reports cached input beside the input, not as a part of it
 */
export function countUsage(usage: Usage, isCacheApart: boolean): CountedUsage {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage;
  const cachedBesideInputTokens = isCacheApart ? cachedInputTokens : undefined;
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens,
    cachedBesideInputTokens,
    reasoningTokens,
  } satisfies EachOf<CountedField>;
}

export function addUsage(a: Usage, b: Usage): Usage {
  const sum = pickUsage(a);
  addUsageTo(sum, b);
  return sum;
}

const addedParts = [...countedParts, ...chargeFields];

/** Changes `sum`. */
export function addUsageTo(sum: CountedUsage, added: CountedUsage): void {
  for (const total of usageTotals) sum[total] += added[total];
  for (const part of addedParts) {
    const count = added[part];
    if (count !== undefined) sum[part] = (sum[part] ?? 0) + count;
  }
}

export function subtractUsage(a: Usage, b: Usage): Usage {
  const difference = { ...noUsage };
  for (const total of usageTotals) difference[total] = a[total] - b[total];
  for (const part of usageParts) difference[part] = (a[part] ?? 0) - (b[part] ?? 0);
  return difference;
}

/** The usage with other totals, and its parts as far as they fit. */
export function limitUsage(usage: Usage, totals: Usage): Usage {
  const limited = { ...noUsage };
  for (const total of usageTotals) limited[total] = totals[total];
  for (const part of usageParts) {
    limited[part] = usage[part] && Math.min(usage[part], totals[totalsOfParts[part]]);
  }
  return limited;
}

/** What is summed of a key, a minute, an hour or a day. */
export const sumFields = ["requestCount", ...usageTotals] as const;
export type UsageSum = Record<(typeof sumFields)[number], number>;

export interface KeyUsage extends UsageSum {
  keyId: KeyId;
}

/** For whom it counts. */
export interface CountedFor {
  keyId: KeyId;
  /** When the request began; unset: none. */
  teamId?: TeamId | undefined;
  /** Unset: nobody in particular. */
  userId?: UserId | undefined;
}

/** The sum of the usage events of one key, team, user and model in one minute. */
export interface UsageIncrement extends KeyUsage, CountedFor, CountedUsage {
  /** Minutes since the epoch. */
  minute: number;
  /** `closedAt` of the latest event, epoch milliseconds. */
  lastClosedAt: number;
  /** Unset: the requests named none. */
  model?: string | undefined;
}

/** Counts for a key and a minute. */
export const createIncrement = (
  counted: CountedUsage,
  { keyId, teamId, userId, minute, requestCount, lastClosedAt, model }: Omit<UsageIncrement, CountedField>,
): UsageIncrement =>
  ({
    keyId,
    teamId,
    userId,
    model,
    minute,
    requestCount,
    inputTokens: counted.inputTokens,
    outputTokens: counted.outputTokens,
    cachedInputTokens: counted.cachedInputTokens,
    cachedBesideInputTokens: counted.cachedBesideInputTokens,
    reasoningTokens: counted.reasoningTokens,
    besideTokens: counted.besideTokens,
    estimatedTokens: counted.estimatedTokens,
    lastClosedAt,
  }) satisfies UsageIncrement & EachOf<CountedField>;

/** What a flush notes of a response that the backend stores under an id, and may report again. */
export interface ResponseUsage extends CountedFor, Usage {
  responseId: string;
  /**
   * Unset: the tokens that the key was shown, of which what is new counts. `created`: what its create reported, which the
   * increments contain too. `owned`: that the key has it, without tokens.
   */
  as?: "created" | "owned" | undefined;
  /** The name of the backend that has it; unset if there is one only. */
  backend?: string | undefined;
  /** Epoch milliseconds. */
  closedAt: number;
  model?: string | undefined;
}

/** What a backend processed on a day, and what was counted for it in the same minutes. */
export const reconciledFields = [
  "generatedTokens",
  "promptTokens",
  "countedOutputTokens",
  "countedInputTokens",
] as const;

/** Whose limits it counts against. */
export function subjectsOf({ keyId, teamId, userId }: CountedFor): SubjectId[] {
  const subjects = [keyId];
  if (teamId !== undefined) subjects.push(subjectOf(teamId));
  if (userId !== undefined) subjects.push(subjectOf(userId));
  return subjects;
}

export const noSum: UsageSum = { requestCount: 0, inputTokens: 0, outputTokens: 0 };

export const addSums = (a: UsageSum, b: UsageSum): UsageSum => ({
  requestCount: a.requestCount + b.requestCount,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
});

/** Tells the responses of a flush apart. */
export const responseRef = (keyId: KeyId, responseId: string): string => `${keyId} ${responseId}`;
