import { addressScope } from "../domain/client-address.ts";
import { describeOwnKey } from "../admin/keys/own-key.ts";
import type { Config } from "../config/config.ts";
import type { RequestObserver } from "../domain/requests.ts";
import { createHeldBytes } from "../proxy/request/held-bytes.ts";
import type { ReadUsed } from "../proxy/request/limits-left.ts";
import { createProxy, type Proxy } from "../proxy/routes.ts";
import { createConnectTimeout } from "../proxy/upstream/connections.ts";
import { addressOf } from "../proxy/upstream/connections.ts";
import { connectTo } from "../proxy/upstream/connections.ts";
import { countConnecting } from "../proxy/upstream/connections.ts";
import { createForward } from "../proxy/upstream/forward.ts";
import { createReadTimeouts } from "../proxy/upstream/read-timeout.ts";
import type { Connections } from "../runtime/listen.ts";
import { usedOf } from "../store/limits/windows.ts";
import { createDescriptorLog } from "../telemetry/descriptors.ts";
import { observeAll, observePerTick } from "../telemetry/observers.ts";
import { createRequestLog } from "../telemetry/request-log.ts";
import { createStoredRequestLog } from "../telemetry/stored-request-log.ts";
import { coalescePerTick } from "../time/per-tick.ts";
import { clientAddressOf } from "./client-address-of.ts";
import { monotonic, type Services } from "./services.ts";

const connectTimeoutMs = 10_000;

/** What `/v1` is made of. */
export function proxySideOf(config: Config, parts: Services, connections: Connections): Proxy {
  const { name, baseUrl, socket } = config.upstream;
  const address = addressOf(baseUrl, socket);
  const startReadTimeout = createReadTimeouts(monotonic);
  return createProxy({
    config: { ...config, ...config.proxy },
    sseKeepaliveMs: config.proxy.sseKeepaliveMs,
    backend: socket === undefined ? new URL(baseUrl).host : name,
    findKey: parts.store.keys.findActive,
    listCreators: parts.store.usage.listCreators,
    record: parts.ledger.record,
    admit: parts.admissions.admit,
    readUsed: readUsedOf(parts.store),
    findOwnKey: describeOwnKey({ store: parts.store, clock: parts.clock }),
    queue: parts.queue,
    startReadTimeout,
    wall: parts.clock,
    monotonic,
    log: parts.log,
    forward: createForward({
      baseUrl,
      socket,
      fetch,
      connectTimeout: createConnectTimeout({
        connect: connectTo(address),
        countConnecting: async () => ("port" in address ? await countConnecting(address.port) : undefined),
        limitMs: connectTimeoutMs,
        monotonic,
      }),
      startReadTimeout,
      stopping: parts.stopping.signal,
      onKeyEnded: parts.endings.onRevoked,
      monotonic,
    }),
    addInFlight: parts.inFlight.add,
    observer: observePerTick(observeAll(...observersOf(config, parts))),
    peerAddress: connections.peerAddress,
    clientAddress: clientAddressOf(config),
    heldBytes: createHeldBytes(config.proxy.maxHeldBytes, config.proxy.maxHeldBytes / 4),
    disableIdleTimeout: connections.disableIdleTimeout,
    isStopping: () => parts.draining.signal.aborted,
  });
}

/** Once for all requests of a key that fail in one tick. */
function readUsedOf({ limits }: Services["store"]): ReadUsed {
  const read = coalescePerTick(async (keyId) => await limits.listLoads([Number(keyId)]));
  return async (keyId) => {
    const [load] = await read(String(keyId));
    return (name) => load && usedOf(load, name);
  };
}

function observersOf({ storage: { retention } }: Config, parts: Services): RequestObserver[] {
  const { metrics, recorder, upstreamFailures, ledger, log, clock } = parts;
  const observers = [metrics, recorder, upstreamFailures, createRequestLog(log), createDescriptorLog(log, monotonic)];
  if (retention.requestLog.days === 0) return observers;
  const { logRequest } = ledger;
  const onOmitted = metrics.requestOmitted;
  return [...observers, createStoredRequestLog({ logRequest, networkOf: addressScope, onOmitted, clock })];
}
