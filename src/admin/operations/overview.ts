import { hotCelsius } from "../../domain/gpu.ts";
import { limitKinds } from "../../domain/limits.ts";
import { minuteOf, msPerMinute, timestampOf } from "../../time/seoul.ts";
import type { AdminDeps } from "../http/deps.ts";
import { queueOf } from "../requests/queue.ts";
import { usageTotalBody } from "../usage/usage.ts";
import type { OverviewBody } from "./contract.ts";

/** A host pushes about once a second. */
const staleAfterMs = 2 * msPerMinute;
/** From which share of a limit on one is near it, and of how many it is told. */
const [nearShare, most] = [0.8, 5];
/** All places of a backend may be taken for so long before it is told. */
const fullMs = 5 * msPerMinute;

export const getOverview =
  ({ store, clock, inFlight, backendStates, catalog, running, separatePorts, upstreamUrl }: AdminDeps) =>
  async (): Promise<OverviewBody> => {
    const now = clock();
    const minute = minuteOf(now);
    const [lastMinute, activeKeys, near, samples, runningRequests, states, all] = await Promise.all([
      store.usage.sumOfMinutes(minute - 1, minute),
      store.keys.countActive(),
      store.limits.listNear(nearShare, most),
      store.gpu.latest(),
      inFlight(),
      backendStates(),
      running(),
    ]);
    const { backends } = catalog();
    return {
      now: timestampOf(now),
      last_minute: usageTotalBody(lastMinute),
      active_keys: activeKeys,
      near_limit: near.map(({ id, name, limit, used, most: ofLimit }) => {
        const kind = id < 0 ? "team" : "key";
        return { kind, id: Math.abs(id), name, used, limit: ofLimit, unit: limitKinds[limit].unit };
      }),
      in_flight: runningRequests,
      queue: queueOf(catalog(), states, all),
      separate_ports: separatePorts,
      backends: backends.length,
      full_backends: states.flatMap(({ name, fullSince: since, inFlight: places }) =>
        since === undefined || now - since < fullMs ? [] : [{ name, places, since: timestampOf(since) }],
      ),
      hot_gpus: samples
        .flatMap(({ gpuId, name, tempC, recordedAt }) =>
          tempC === null || tempC < hotCelsius || now - recordedAt >= staleAfterMs
            ? []
            : [{ gpu_id: gpuId, name, temp_c: tempC }],
        )
        .toSorted((one, other) => other.temp_c - one.temp_c),
      upstream_url: upstreamUrl,
    };
  };
