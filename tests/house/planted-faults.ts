/** A fault that somebody could make in the program, as a change of its text. */
export interface PlantedFault {
  /** Stays when its room is rebuilt; text and tests are then written anew. */
  id: string;
  /** What happens, and to whom. */
  says: string;
  /** Stands in one file of the program, and once in it. */
  find: string;
  put: string;
  /** The test files of which one catches it. */
  tests: readonly string[];
}

/** At least four in each room that is rebuilt. `plant-faults.ts` runs their tests. */
export const plantedFaults: readonly PlantedFault[] = [
  // Bodies: held or passed.
  {
    id: "body-no-object",
    says: "A body of a key with rules passes unread if it is no JSON object, such as one in an unknown coding",
    find: `if (mustBeObject && !rewritten.isObject && hasBody(encoded ?? body)) throw new ProxyError("unsupported_body");`,
    put: ``,
    tests: ["tests/wire/disguised-bodies.test.ts"],
  },
  {
    id: "body-budget-leaks",
    says: "What a body took of the budget of held bytes does not come back",
    find: `if (kept < body.taken) add(budget, body, kept - body.taken);`,
    put: `if (kept < body.taken) body.taken = kept;`,
    tests: ["tests/proxy/request/held-bytes.test.ts"],
  },
  {
    id: "body-stale-coding",
    says: "A decoded and edited body goes to the backend under the coding that it came in",
    find: `isDecoded: isDecoded && !isAsItCame`,
    put: `isDecoded: false`,
    tests: ["tests/wire/disguised-bodies.test.ts"],
  },
  {
    id: "body-chunked-no-end",
    says: "A body without a length may grow beyond MAX_BODY_BYTES",
    find: `if (end > (length ?? maxBytes))`,
    put: `if (end > (length ?? Infinity))`,
    tests: ["tests/proxy/request/hold-or-stream.test.ts", "tests/wire/disguised-bodies.test.ts"],
  },
  {
    id: "body-form-model-unread",
    says: "A form goes to any backend, whatever model it names",
    find: `readsForms: names.catalog.file !== undefined`,
    put: `readsForms: false`,
    tests: ["tests/wire/models-of-a-file.test.ts"],
  },
  {
    id: "body-other-type-unread",
    says: "JSON that says it is a form is not capped",
    find: `if (!mayBeObject) {`,
    put: `if (!mayBeObject || !isPlain || request.headers.get("content-type") !== "application/json") {`,
    tests: ["tests/wire/disguised-bodies.test.ts"],
  },

  // Streams, and the usage in them.
  {
    id: "stream-left-uncharged",
    says: "A stream that its client leaves early costs a limit of tokens no estimate",
    find: `const estimatedTokens = isStream ? estimateStream(`,
    put: `const estimatedTokens = isStream && !isWhole ? 0 : isStream ? estimateStream(`,
    tests: ["tests/proxy/ways-round-a-limit.test.ts"],
  },
  {
    id: "stream-end-before-commit",
    says: "A client sees the end of a stream before its count is committed",
    find: `commit(reader.seen()).then(() => sendFromUpstream(terminal))`,
    put: `(sendFromUpstream(terminal), commit(reader.seen()))`,
    tests: ["tests/proxy/response/meter-terminal-event.test.ts"],
  },
  {
    id: "stream-asked-usage-shown",
    says: "A client gets the chunk of usage that only we asked for",
    find: `const includeUsage = added.includeUsage && !keepsUsage;`,
    put: `const includeUsage = false;`,
    tests: ["tests/proxy/usage/stream-filter.test.ts"],
  },
  {
    id: "stream-half-event",
    says: "An error follows half an event",
    find: `if (end === 0) return hold(bytes);`,
    put: `if (end === 0) return bytes;`,
    tests: ["tests/proxy/response/event-hold.test.ts"],
  },
  {
    id: "stream-comment-in-line",
    says: "A keepalive stands in the middle of a line",
    find: `  "inside a line": undefined,`,
    put: `  "inside a line": utf8.encode(": keepalive\\n\\n"),`,
    tests: ["tests/proxy/response/meter-keepalive.test.ts"],
  },
  {
    id: "usage-opening-is-output",
    says: "The placeholder that a Messages stream opens with counts as what was generated",
    find: `return { ...usage, outputIsOpening: true, isAlone, elsewhere };`,
    put: `return { ...usage, outputIsOpening: false, isAlone, elsewhere };`,
    tests: ["tests/proxy/usage/event-usage.test.ts", "tests/proxy/ways-round-a-limit.test.ts"],
  },
  {
    id: "usage-last-choice",
    says: "Of several choices, a key pays for the last alone",
    find: `        output += choice.output;`,
    put: `        output = choice.output;`,
    tests: ["tests/proxy/usage/choices.test.ts", "tests/proxy/ways-round-a-limit.test.ts"],
  },
  {
    id: "usage-mark-after-comment",
    says: "A byte order mark after a comment of ours spoils the first line",
    find: `output.send(upstreamBegan || !hasSent() ? bytes : withoutByteOrderMark(bytes));`,
    put: `output.send(bytes);`,
    tests: ["tests/proxy/response/meter-keepalive.test.ts", "tests/proxy/response/meter.test.ts"],
  },

  // Waiting.
  {
    id: "wait-late-admission",
    says: "An admission stays taken whose request left while it was decided",
    find: `if (this.#state !== "asking") return admission.cancel();`,
    put: `if (this.#state !== "asking") return undefined;`,
    tests: ["tests/proxy/key-lines.test.ts"],
  },
  {
    id: "wait-place-not-passed-on",
    says: "A place that becomes free goes to nobody who waits",
    find: `      lineOf(keyId).inFlight -= 1;\n      grantNext();`,
    put: `      lineOf(keyId).inFlight -= 1;`,
    tests: ["tests/routing/fair-queue.test.ts"],
  },
  {
    id: "wait-tried-forgotten",
    says: "A request that moves on may come to the backend that it left",
    find: `this.#tried = [...this.#tried, this.backend];`,
    put: `this.#tried = [];`,
    tests: ["tests/proxy/moving-on.test.ts"],
  },
  {
    id: "wait-revoked-stays",
    says: "Requests of a revoked key go on waiting",
    find: `if (one.keyId === keyId && one.startedAt <= begunUntil) one.end(revoked());`,
    put: `if (one.keyId === keyId && one.startedAt > begunUntil) one.end(revoked());`,
    tests: ["tests/proxy/waiting.test.ts"],
  },
  {
    id: "wait-one-key-fills-list",
    says: "A key that waits with many keeps others out of the list",
    find: `return staysBehind ? [...longest.waiting].at(-1) : undefined;`,
    put: `return staysBehind ? undefined : undefined;`,
    tests: ["tests/routing/fair-queue.test.ts"],
  },
  {
    id: "wait-warm-up-ignored",
    says: "A backend that is just back gets all that wait at once",
    find: `inFlight >= maxConcurrency || unbegun >= warmUp;`,
    put: `inFlight >= maxConcurrency || unbegun >= warmUp * 1000;`,
    tests: ["tests/routing/choice.test.ts"],
  },
  {
    id: "wait-holds-limit-without-backend",
    says: "A request keeps its key's place while all its backends are out",
    find: `if (isOut && this.#runsSince === undefined) this.#giveBackAdmission();`,
    put: ``,
    tests: ["tests/proxy/moving-on.test.ts"],
  },
  {
    id: "wait-one-key-fills-line",
    says: "A key that waits with many for its limits keeps others out of the line",
    find: `[...longest.waits].at(-1)?.end(new ProxyError("queue_full"));\n    return true;`,
    put: `return false;`,
    tests: ["tests/proxy/key-lines.test.ts"],
  },
  {
    id: "wait-no-less",
    says: "A request that would take what is left of a limit of tokens is refused",
    find: `  return decide(load, limits, { tokens: left });`,
    put: `  return { refusedBy, tokens, load };`,
    tests: ["tests/admission/admission.test.ts"],
  },

  // The life of a request.
  {
    id: "life-slot-kept",
    says: "A request that has ended keeps its place of max_concurrency",
    find: `    this.admission?.end();\n`,
    put: ``,
    tests: ["tests/proxy/moving-on.test.ts", "tests/wire/max-concurrency.test.ts"],
  },
  {
    id: "life-body-kept-after-failure",
    says: "A request that fails before it is sent keeps what its body took of the budget",
    find: `using held = deps.heldBytes.open(key.id);`,
    put: `const held = deps.heldBytes.open(key.id);`,
    tests: ["tests/wire/held-bodies.test.ts"],
  },
  {
    id: "life-drain-ignored",
    says: "A server that stops takes new requests",
    find: `if (deps.draining.aborted) throw new ProxyError("shutting_down");`,
    put: ``,
    tests: ["tests/wire/shutdown.test.ts"],
  },
  {
    id: "life-error-without-limits",
    says: "An error tells its client nothing of what is left of its limits",
    find: `await readLimitsLeft(keyId, limits, deps)`,
    put: `undefined`,
    tests: ["tests/wire/limits.test.ts", "tests/wire/refusals.test.ts"],
  },
  {
    id: "life-operator-cannot-end",
    says: "A request that waits does not end when the operator ends it",
    find: `  tracker.onEndRequested(() => turn.end(endedByAdmin()));\n`,
    put: ``,
    tests: ["tests/wire/fair-queue.test.ts"],
  },
  {
    id: "life-old-address",
    says: "A request that waited goes to the address that its backend had before",
    find: `return begun.backends.map((backend) => inUse.backends.find(({ name }) => name === backend.name) ?? backend);`,
    put: `return begun.backends;`,
    tests: ["tests/server/current-catalog.test.ts"],
  },

  // Stored ids.
  {
    id: "ids-others-response",
    says: "A key is shown a response that another key made",
    find: `if (own === undefined) throw new ProxyError("not_found");`,
    put: `if (own === undefined) return undefined;`,
    tests: ["tests/wire/response-owners.test.ts", "tests/wire/ids-of-backends.test.ts"],
  },
  {
    id: "ids-look-up-fails-open",
    says: "While the database is away, every key may read every response",
    find: `throw new ProxyError("storage_unavailable", { message, headers: [] });`,
    put: `return undefined && message;`,
    tests: ["tests/proxy/request/stored-response.test.ts"],
  },
  {
    id: "ids-body-not-asked",
    says: "A body may go on with what another key made",
    find: `new Set([...references, ...(inPath === undefined ? [] : [inPath])])`,
    put: `new Set([...references.slice(0, 0), ...(inPath === undefined ? [] : [inPath])])`,
    tests: ["tests/wire/stored-responses.test.ts", "tests/wire/ids-of-backends.test.ts"],
  },
  {
    id: "ids-stream-unannounced",
    says: "The id of a running stream is everybody's",
    find: `void record({ keyId, closedAt: wall(), ...noUsage, requestCount: 0, created: create });`,
    put: `void create;`,
    tests: ["tests/wire/response-owners.test.ts", "tests/proxy/response/count.test.ts"],
  },
  {
    id: "ids-read-counts-again",
    says: "Each read of a response counts its tokens again",
    find: `responseId: usage.inputTokens + usage.outputTokens > 0 ? readId : undefined,`,
    put: `responseId: undefined,`,
    tests: ["tests/wire/stored-responses.test.ts"],
  },

  // What a key with limits or models may send.
  {
    id: "member-other-case",
    says: "Max_Tokens, which backends in Go read, is not capped",
    find: `return isLimitName(name) ? maxTokensInOtherCase.slot : undefined;`,
    put: `return undefined;`,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-n-cmpl",
    says: "n_cmpl, which multiplies the output at llama.cpp, goes round a limit of tokens",
    find: `  n_cmpl: { rule: "tokens",`,
    put: `  n_cmpl_: { rule: "tokens",`,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-fallbacks",
    says: "A key reaches a model that it may not use by fallbacks",
    find: `  fallbacks,\n  context_window_fallbacks: fallbacks,`,
    put: `  context_window_fallbacks: fallbacks,`,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-minus-one",
    says: "-1, which is no end for llama.cpp, goes round a limit of tokens",
    find: `findPositiveInteger(bytes, value) !== undefined);`,
    put: `value.kind === "number");`,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-extra-body",
    says: "What stands in extra_body goes round the rules of a key",
    find: `members["extra_body"] = createSlot({ onOtherMember: otherMembersIn("extra_body.") });`,
    put: ``,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-two-models",
    says: "A body that names two models passes if one of them is allowed",
    find: `if (model.values.length > 1) found = addFound(found, "model");`,
    put: ``,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-background",
    says: "Work in the background is charged to no limit of tokens",
    find: `if (isLenientTrue(bytes, background)) onFound("background");`,
    put: ``,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "form-two-models",
    says: "A form that names two models passes if one of them is allowed",
    find: `if (model !== undefined) throw memberNotAllowed({ name: "model" });`,
    put: ``,
    tests: ["tests/wire/members-not-allowed.test.ts", "tests/proxy/request/form-model.test.ts"],
  },
  {
    id: "form-any-model",
    says: "A key transcribes with a model that it may not use",
    find: `checksForms: allowed !== null,`,
    put: `checksForms: false,`,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "member-query-model",
    says: "A key reaches a model that it may not use by the query",
    find: `if (!inQuery.every(isAllowed)) throw new ProxyError("model_not_allowed");`,
    put: ``,
    tests: ["tests/proxy/request/model-rule.test.ts", "tests/wire/allowed-models.test.ts"],
  },

  // What the database refuses.
  {
    id: "refused-takes-others",
    says: "What the database refuses of one key is refused of all keys of the flush",
    find: `[undefined, ...keys].map((key) => ({`,
    put: `[undefined, ...keys].slice(0, 2).map((key) => ({`,
    tests: ["tests/store/usage/batch.test.ts", "tests/store/sick-storage.test.ts"],
  },
  {
    id: "refused-observed",
    says: "Metrics count what the database refused",
    find: `.filter(({ keyId }) => !isRefused.has(keyId));`,
    put: `.filter(() => isRefused.size >= 0);`,
    tests: ["tests/ledger/refused-usage.test.ts"],
  },
  {
    id: "refused-unsaid",
    says: "Nobody is told the numbers that the database refused",
    find: `  logRefused(state.log, refused);\n`,
    put: ``,
    tests: ["tests/ledger/refused-usage.test.ts"],
  },
  {
    id: "refused-rows-unsaid",
    says: "The rows of the request log that went with a refused count are not counted as dropped",
    find: `state.dropped.requests += rows;`,
    put: `void rows;`,
    tests: ["tests/ledger/refused-usage.test.ts"],
  },
  {
    id: "refused-savepoint",
    says: "What a key had written before it was refused stays",
    find: `client.run("ROLLBACK TO part");`,
    put: ``,
    tests: ["tests/store/usage/usage.test.ts"],
  },
  {
    id: "flush-counts-twice",
    says: "A flush whose reply was lost counts twice",
    find: `  const id: FlushId = { ledger: state.id, number: ++state.flushNumber };\n  for (let retryMs = state.firstRetryMs; !state.closed; retryMs = Math.min(retryMs * 2, state.maxRetryMs)) {`,
    put: `  for (let retryMs = state.firstRetryMs; !state.closed; retryMs = Math.min(retryMs * 2, state.maxRetryMs)) {\n    const id: FlushId = { ledger: state.id, number: ++state.flushNumber };`,
    tests: ["tests/ledger/outages.test.ts"],
  },

  // Reports.
  {
    id: "report-utc-days",
    says: "The days of a chart are those of UTC",
    find: `const alignmentOf = (unit: number): number => (unit === minutesPerDay ? offsetMinutes : 0);`,
    put: `const alignmentOf = (unit: number): number => (unit === minutesPerDay ? 0 : 0);`,
    tests: ["tests/store/reports/reports.test.ts", "tests/store/reports/chart.test.ts"],
  },
  {
    id: "report-cost-not-summed",
    says: "The cost of a row is that of its last slice",
    find: `else sum.cost = (sum.cost ?? 0) + costOf(price, usage);`,
    put: `else sum.cost = costOf(price, usage);`,
    tests: ["tests/admin/usage/costs.test.ts"],
  },
  {
    id: "report-one-price",
    says: "The price of the last day is that of the whole range",
    find: `const starts = [firstDay, ...priceDays(ranked)];`,
    put: `const starts = [firstDay, ...priceDays(ranked).slice(0, 0)];`,
    tests: ["tests/admin/usage/costs.test.ts"],
  },
  {
    id: "report-hidden-shown",
    says: "A key that the reader hides has a series",
    find: `const hidden = new Set(range.hiddenIds);`,
    put: `const hidden = new Set(range.hiddenIds.slice(0, 0));`,
    tests: ["tests/store/reports/chart.test.ts", "tests/admin/usage/chart.test.ts"],
  },
  {
    id: "report-page-repeats",
    says: "A page of costs begins with the last row of the page before",
    find: `if (after !== undefined && compare(position, after) <= 0) return;`,
    put: `if (after !== undefined && compare(position, after) < 0) return;`,
    tests: ["tests/admin/usage/costs.test.ts"],
  },

  // Fields of the request log.
  {
    id: "log-no-estimate",
    says: "A row does not say what was estimated",
    find: `estimatedTokens === 0 ? null : estimatedTokens,`,
    put: `estimatedTokens === 0 ? null : null,`,
    tests: ["tests/wire/limits.test.ts"],
  },
  {
    id: "log-failure-hidden",
    says: "A response that broke off is not among the failures",
    find: `request.outcome !== "completed" || request.status >= 400 ? 1 : 0,`,
    put: `request.status >= 400 ? 1 : 0,`,
    tests: ["tests/store/requests/log.test.ts", "tests/admin/requests/requests.test.ts"],
  },
  {
    id: "log-end-not-amended",
    says: "A row says when its request was counted, and not when it ended",
    find: `if (record.writtenMs !== record.durationMs) amendRequest(record);`,
    put: ``,
    tests: ["tests/telemetry/stored-request-log.test.ts", "tests/wire/request-log.test.ts"],
  },
  {
    id: "log-client-by-version",
    says: "The filter of a program finds no version of it",
    find: `or(eq(log.client, client), beginsWith(log.client, \`\${client}/\`)),`,
    put: `or(eq(log.client, client), eq(log.client, client)),`,
    tests: ["tests/store/requests/log.test.ts", "tests/admin/requests/requests.test.ts"],
  },
  {
    id: "log-changes-lost",
    says: "A row does not say what of the request was changed",
    find: `for (const kind of changes.kinds) flags |= changeBits[kind];`,
    put: `for (const kind of changes.kinds) flags |= changeBits[kind] & 0;`,
    tests: ["tests/store/requests/log.test.ts", "tests/admin/requests/requests.test.ts"],
  },

  // Paths, and what stands before the life of a request.
  {
    id: "path-dots-twice-encoded",
    says: "Two dots pass that are percent-encoded twice",
    find: `    if (decoded === text) return false;\n    text = decoded;`,
    put: `    return decoded.includes("..");`,
    tests: ["tests/proxy/request/path.test.ts", "tests/wire/path-guard.test.ts"],
  },
  {
    id: "path-backslash",
    says: "Two dots pass behind a backslash",
    find: `hasDotDot(first) ? refuse : others)(request)`,
    put: `hasDotDot(first) ? others : others)(request)`,
    tests: ["tests/proxy/request/path.test.ts", "tests/wire/base-url.test.ts"],
  },
  {
    id: "path-preflight-needs-key",
    says: "A page's preflight needs a key, which it cannot have",
    find: `if (preflight !== undefined) return complete(incoming.tracker, preflight);`,
    put: ``,
    tests: ["tests/wire/cors.test.ts"],
  },
  {
    id: "path-key-logged",
    says: "An API key that stands in a path is in the log",
    find: `if (holdsKey(segment, credential)) segments[index] = "***";`,
    put: `if (holdsKey(segment, credential)) segments[index] = segment;`,
    tests: ["tests/proxy/request/path.test.ts", "tests/proxy/request/target.test.ts"],
  },
  {
    id: "path-trace",
    says: "TRACE, which gives back what it gets, reaches the backend",
    find: `if (!methods.has(request.method)) throw new ProxyError("method_not_allowed");`,
    put: ``,
    tests: ["tests/proxy/request/target.test.ts", "tests/wire/odd-requests.test.ts"],
  },
  {
    id: "path-double-slash",
    says: "A base URL with a slash at its end finds nothing",
    find: `.all("//v1/*", ({ request }) => handle(request), untouched);`,
    put: `;`,
    tests: ["tests/wire/base-url.test.ts"],
  },
  {
    id: "path-closed-in-capitals",
    says: "A closed path opens if it is written in capitals",
    find: `if (closed.some((glob) => matchesGlob(glob.toLowerCase(), lower)))`,
    put: `if (closed.some((glob) => matchesGlob(glob, plain)))`,
    tests: ["tests/proxy/request/path.test.ts", "tests/wire/key-rules.test.ts"],
  },
  {
    id: "path-batches-open",
    says: "A key with a limit of tokens goes round it by a batch",
    find: `if (limitsTokens && !namesBatches && `,
    put: `if (!limitsTokens && !namesBatches && `,
    tests: ["tests/proxy/request/path.test.ts", "tests/wire/key-rules.test.ts"],
  },
  {
    id: "path-encoded-letter",
    says: "A key with rules asks for a path whose letters only some backends decode",
    find: `needlesslyEncoded.test(path)`,
    put: `false`,
    tests: ["tests/wire/members-not-allowed.test.ts"],
  },
  {
    id: "body-encoded-elsewhere",
    says: "A compressed body of a key with rules goes unread to another path",
    find: `if (mustBeReadable && !isPlain && declaredLength(request) !== 0)`,
    put: `if (false)`,
    tests: ["tests/wire/disguised-bodies.test.ts"],
  },
];
