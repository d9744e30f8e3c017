import type { Usage } from "../domain.ts";
import { type SimulatedResponse, isObject } from "./answer.ts";
import type { EndingKind } from "./recording.ts";
import type { SimulatedRequest } from "./request.ts";

/** Requests that came to their end and the tokens of their answers. */
export interface Sum extends Usage {
  requests: number;
}

export interface Stats {
  /** Answers under way. */
  open: number;
  finished: number;
  /** The client left before the end. */
  aborted: number;
  /** Cut short by a script. */
  broken: number;
  /** Finished answers with a 2xx status: what the simulator counted, told or not. */
  counted: Sum;
  /** Of these, the ones that told their usage to the client. */
  reported: Sum;
  /** `reported`, apart for each model and for each end user that requests name (`user`, `metadata.user_id`). */
  reportedByModel: Readonly<Record<string, Sum>>;
  reportedByUser: Readonly<Record<string, Sum>>;
}

export interface StatsKeeper {
  started: () => void;
  ended: (request: SimulatedRequest, how: EndingKind, answer: SimulatedResponse | undefined) => void;
  /** A copy that stays as it is. */
  read: () => Stats;
}

export function createStats(): StatsKeeper {
  const endings = { finished: 0, aborted: 0, broken: 0 };
  let open = 0;
  const counted = emptySum();
  const reported = emptySum();
  const byModel = new Map<string, Sum>();
  const byUser = new Map<string, Sum>();

  return {
    started: () => void open++,
    ended(request, how, answer) {
      open--;
      endings[how]++;
      if (how !== "finished" || answer === undefined || answer.status < 200 || answer.status > 299) return;
      addTo(counted, answer.usage);
      if (!answer.usageReported) return;
      addTo(reported, answer.usage);
      const { model, user } = namesIn(request);
      if (model !== undefined) addTo(sumFor(byModel, model), answer.usage);
      if (user !== undefined) addTo(sumFor(byUser, user), answer.usage);
    },
    read: () =>
      structuredClone({
        open,
        ...endings,
        counted,
        reported,
        reportedByModel: Object.fromEntries(byModel),
        reportedByUser: Object.fromEntries(byUser),
      }),
  };
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

function namesIn(request: SimulatedRequest): { model: string | undefined; user: string | undefined } {
  const body = request.json();
  if (!isObject(body)) return { model: undefined, user: undefined };
  const user = isObject(body["metadata"]) ? (body["metadata"]["user_id"] ?? body["user"]) : body["user"];
  return { model: asString(body["model"]), user: asString(user) };
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
