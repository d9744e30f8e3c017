import { addressScope } from "../domain/client-address.ts";
import { equalSecrets } from "../admin/session/secrets.ts";
import { describeOwnKey } from "../admin/keys/own-key.ts";
import type { Config } from "../config/config.ts";
import { hash } from "../proxy/request/conversation.ts";
import { HeldBytes } from "../proxy/request/body-budget-and-pace.ts";
import type { ReadUsed } from "../proxy/request/limit-refusals.ts";
import type { IsSigned } from "../proxy/request/users.ts";
import { createCurrentRewriting, createMemory } from "../proxy/rewrite/rewrite.ts";
import { createProxy, type Proxy } from "../proxy/gateway.ts";
import { createForwards, createReadTimeouts } from "../proxy/upstream/forward.ts";
import type { Connections } from "../runtime/listen.ts";
import { usedOf } from "../store/limits/judge.ts";
import { createDescriptorLog } from "../telemetry/descriptors.ts";
import { createRequestLog, createStoredRequestLog, observePerTick } from "../telemetry/observers.ts";
import { coalescePerTick } from "../time/per-tick.ts";
import { monotonic, type Services } from "./services.ts";
import type { SubjectId } from "../domain/keys.ts";
import type { RequestObserver } from "../domain/requests.ts";

export type ProxyConfig = Pick<Config, "upstream" | "proxy" | "listen" | "admin">;

/** What `/v1` is made of. */
export function proxySideOf(config: ProxyConfig, services: Services, connections: Connections): Proxy {
  const { upstream, proxy, listen, admin } = config;
  const { catalog, backendModels, store, clock, stopping, revocations } = services;
  return createProxy({
    ...services,
    ...connections,
    monotonic,
    config: { upstream, ...proxy, sharesOrigin: listen.adminPort === undefined },
    rewriting: createCurrentRewriting(catalog, backendModels.discovered, createMemory(seededHash())),
    sseKeepaliveMs: proxy.sseKeepaliveMs,
    findKey: store.keys.findActive,
    seeUser: store.subjects.see,
    isSigned,
    saltOf: (text) => new Bun.CryptoHasher("sha256", admin.secretKey ?? "").update(text).digest("base64url"),
    record: services.ledger.record,
    readUsed: readUsedOf(store),
    findOwners: store.usage.findOwners,
    countOwned: store.usage.countOwned,
    findOwnKey: describeOwnKey(services),
    wall: clock,
    forwards: createForwards({
      catalog,
      fetch,
      startReadTimeout: createReadTimeouts(monotonic),
      stopping: stopping.signal,
      onKeyEnded: revocations.onRevoked,
      monotonic,
    }),
    addInFlight: services.inFlight.add,
    cacheReporters: new Set(),
    observer: observePerTick(observersOf(services), [createDescriptorLog(services.log, monotonic)]),
    heldBytes: new HeldBytes(proxy.maxHeldBytes, proxy.maxHeldBytes / 4, monotonic),
    draining: services.draining.signal,
  });
}

const isSigned: IsSigned = (secret, text, signature) =>
  equalSecrets(new Bun.CryptoHasher("sha256", secret).update(text).digest("base64url"), signature);

function seededHash(): typeof hash {
  const [secret = 0] = crypto.getRandomValues(new Uint32Array(1));
  return (text, seed) => hash(text, secret + seed);
}

/** Once for all requests of a subject that fail in one tick. */
function readUsedOf({ limits }: Services["store"]): ReadUsed {
  const read = coalescePerTick(async (id: SubjectId) => await limits.listLoads([id]));
  return async (ids) => {
    const loads = await Promise.all(ids.map(read));
    return (name, at = 0, isCharged = false) => {
      const [load] = loads[at] ?? [];
      return load && usedOf(load, name, isCharged);
    };
  };
}

function observersOf(services: Services): RequestObserver[] {
  const { metrics, recorder, upstreamFailures, ledger, mayLogShared, log, clock } = services;
  const observers = [metrics, recorder, upstreamFailures, createRequestLog(log)];
  if (!services.logsRequests) return observers;
  const onOmitted = metrics.requestOmitted;
  return [...observers, createStoredRequestLog({ ...ledger, networkOf: addressScope, mayLogShared, onOmitted, clock })];
}
