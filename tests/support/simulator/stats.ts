import { isObject, type SimulatedResponse } from "./simulated-response.ts";
import type { EndingKind, SimulatedRequest } from "./request.ts";
import type { Usage } from "../../../src/domain/usage.ts";

/** Finished requests and the tokens of their responses. */
export interface Sum extends Usage {
  requests: number;
}

export interface Stats {
  /** Requests in progress. */
  open: number;
  finished: number;
  /** The client left before the end. */
  aborted: number;
  /** Cut by a script. */
  broken: number;
  /** Finished responses with a 2xx status, as the simulator counted them. */
  counted: Sum;
  /** Those of them that reported their usage to the client. */
  reported: Sum;
  /** `reported` for each model, and for each end user that requests name (`user` or `metadata.user_id`). */
  reportedByModel: Readonly<Record<string, Sum>>;
  reportedByUser: Readonly<Record<string, Sum>>;
  /** What each model processed, also for responses that were cut. */
  processedByModel: Readonly<Record<string, Sum>>;
}

export function createStats() {
  const endings = { finished: 0, aborted: 0, broken: 0 };
  let open = 0;
  const counted = emptySum();
  const reported = emptySum();
  const byModel = new Map<string, Sum>();
  const byUser = new Map<string, Sum>();
  const processed = new Map<string, Sum>();

  return {
    started: () => void open++,
    ended(request: SimulatedRequest, how: EndingKind, response: SimulatedResponse | undefined): void {
      open--;
      endings[how]++;
      if (response === undefined || response.status < 200 || response.status > 299) return;
      const { model, user } = response.usage === undefined ? noNames : namesIn(request);
      if (model !== undefined) addTo(sumFor(processed, model), processedUsage(request, how, response));
      if (how !== "finished") return;
      addTo(counted, response.usage);
      if (!response.usageReported) return;
      addTo(reported, response.usage);
      if (model !== undefined) addTo(sumFor(byModel, model), response.usage);
      if (user !== undefined) addTo(sumFor(byUser, user), response.usage);
    },
    /** A snapshot. */
    read: (): Stats =>
      structuredClone({
        open,
        ...endings,
        counted,
        reported,
        reportedByModel: Object.fromEntries(byModel),
        reportedByUser: Object.fromEntries(byUser),
        processedByModel: Object.fromEntries(processed),
      }),
  };
}

/** A response that was cut has as many tokens as were sent. */
function processedUsage({ tokensSent }: SimulatedRequest, how: EndingKind, { usage }: SimulatedResponse) {
  if (usage === undefined || how === "finished") return usage;
  return { ...usage, outputTokens: Math.min(usage.outputTokens, tokensSent) };
}

function emptySum(): Sum {
  return { requests: 0, inputTokens: 0, outputTokens: 0 };
}

function addTo(sum: Sum, usage: Usage | undefined): void {
  sum.requests++;
  sum.inputTokens += usage?.inputTokens ?? 0;
  sum.outputTokens += usage?.outputTokens ?? 0;
}

function sumFor(sums: Map<string, Sum>, name: string): Sum {
  const sum = sums.get(name) ?? emptySum();
  sums.set(name, sum);
  return sum;
}

const noNames = { model: undefined, user: undefined };

function namesIn(request: SimulatedRequest): { model: string | undefined; user: string | undefined } {
  const body = request.json();
  if (!isObject(body)) return { model: undefined, user: undefined };
  const user = isObject(body["metadata"]) ? (body["metadata"]["user_id"] ?? body["user"]) : body["user"];
  return { model: asString(body["model"]), user: asString(user) };
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
