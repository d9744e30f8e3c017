import { describe, expect, test } from "bun:test";
import { requestRecord } from "../support/request-record.ts";
import { finish, openMetrics, seriesOf, valueOf } from "./open-metrics.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";

test("counts a request by endpoint, method, outcome and status class", async () => {
  using metrics = openMetrics();
  finish(
    metrics,
    requestRecord(),
    requestRecord(),
    requestRecord({ status: 502, outcome: "upstream_failed", code: "upstream_unreachable", cause: "ECONNREFUSED" }),
  );
  const text = await metrics.text();
  const labels = 'method="POST",endpoint="/v1/chat/completions"';
  expect(valueOf(text, `tollgate_requests_total{${labels},outcome="completed",status="2xx"}`)).toBe(2);
  expect(valueOf(text, `tollgate_requests_total{${labels},outcome="upstream_failed",status="5xx"}`)).toBe(1);
  expect(valueOf(text, 'tollgate_upstream_errors_total{code="upstream_unreachable",cause="ECONNREFUSED"}')).toBe(1);
});

test("estimated tokens are apart from those that the backend reported", async () => {
  using metrics = openMetrics();
  finish(metrics, requestRecord());
  finish(metrics, { ...requestRecord(), estimatedTokens: 30 });
  const text = await metrics.text();
  expect(valueOf(text, "tollgate_estimated_tokens_total")).toBe(30);
  expect(valueOf(text, 'tollgate_tokens_total{direction="input"}')).toBe(2400);
});

test("a response without tokens is counted if it is whole, a 2xx to a POST, and its path reports them", async () => {
  using metrics = openMetrics();
  const none = { usage: { inputTokens: 0, outputTokens: 0 } };
  finish(metrics, requestRecord(none), requestRecord({ ...none, path: "/v1/embeddings", status: 201 }));
  finish(
    metrics,
    requestRecord(),
    requestRecord({ usage: undefined }),
    requestRecord({ usage: { inputTokens: 0, outputTokens: 1 } }),
    requestRecord({ ...none, path: "/v1/models" }),
    requestRecord({ ...none, method: "GET" }),
    requestRecord({ ...none, status: 400 }),
    requestRecord({ ...none, outcome: "client_left" }),
  );
  expect(valueOf(await metrics.text(), "tollgate_responses_without_tokens_total")).toBe(2);
});

test("puts durations into buckets from milliseconds to twenty minutes", async () => {
  using metrics = openMetrics();
  finish(
    metrics,
    requestRecord(),
    requestRecord({ durationMs: 1_100_000 }),
    requestRecord({ durationMs: 4, firstByteMs: undefined }),
  );
  const text = await metrics.text();
  const bucket = (name: string, le: string) =>
    valueOf(text, `${name}_bucket{le="${le}",endpoint="/v1/chat/completions",streamed="true"}`);
  const durations = ["0.01", "30", "60", "600", "1200", "+Inf"].map((le) =>
    bucket("tollgate_request_duration_seconds", le),
  );
  expect(durations).toEqual([1, 1, 2, 2, 3, 3]);
  const firstBytes = ["0.1", "0.25", "+Inf"].map((le) => bucket("tollgate_time_to_first_byte_seconds", le));
  expect(firstBytes).toEqual([0, 2, 2]);
});

test("counts refused requests but does not measure their duration", async () => {
  using metrics = openMetrics();
  finish(
    metrics,
    requestRecord({ outcome: "refused", status: 401, keyId: undefined, usage: undefined, durationMs: 0.2 }),
  );
  const text = await metrics.text();
  expect(seriesOf(text, "tollgate_requests_total")).toHaveLength(1);
  expect(seriesOf(text, "tollgate_request_duration_seconds_count")).toEqual([]);
});

test("bounds the number of series, whatever clients send", async () => {
  using metrics = openMetrics();
  for (let index = 0; index < 2000; index += 1) {
    finish(
      metrics,
      requestRecord({
        method: `VERB${index}`,
        path: `/v1/models/${index}"}\n`,
        status: 100 + index,
        outcome: "upstream_failed",
        code: `code_${index}`,
        cause: `cause_${index}`,
      }),
    );
  }
  const text = await metrics.text();
  expect(seriesOf(text, "tollgate_requests_total").length).toBeLessThanOrEqual(6);
  expect(seriesOf(text, "tollgate_request_duration_seconds_count")).toHaveLength(1);
  expect(seriesOf(text, "tollgate_upstream_errors_total").length).toBeLessThanOrEqual(51);
  expect(valueOf(text, 'tollgate_upstream_errors_total{code="other",cause="other"}')).toBe(1950);
});

test("adds series by the ids of keys and teams if enabled", async () => {
  using metrics = openMetrics({ perKey: true });
  finish(
    metrics,
    requestRecord(),
    requestRecord({ usage: undefined }),
    requestRecord({ keyId: 8, teamId: 3 }),
    requestRecord({ keyId: undefined }),
  );
  const text = await metrics.text();
  expect(valueOf(text, 'tollgate_key_requests_total{key_id="7"}')).toBe(2);
  expect(valueOf(text, 'tollgate_key_tokens_total{key_id="7",direction="input"}')).toBe(1200);
  expect(valueOf(text, 'tollgate_key_tokens_total{key_id="8",direction="output"}')).toBe(350);
  expect(seriesOf(text, "tollgate_key_requests_total")).toHaveLength(2);
  expect(seriesOf(text, "tollgate_team_requests_total")).toEqual(['tollgate_team_requests_total{team_id="3"} 1']);
  expect(valueOf(text, 'tollgate_team_tokens_total{team_id="3",direction="output"}')).toBe(350);
});

test.each([
  [false, "", "direction="],
  [true, '{key_id="7"}', 'key_id="7",direction='],
])("counts what was committed, by key only if enabled (%p)", async (perKey, requestLabels, tokenLabels) => {
  using metrics = openMetrics({ perKey });
  const counted = { keyId: 7, requestCount: 2, inputTokens: 24, outputTokens: 10 };
  metrics.committed(1, [counted, { ...counted, requestCount: 0 }]);
  finish(metrics, requestRecord({ outcome: "upstream_failed" }));
  const text = await metrics.text();
  expect(valueOf(text, `tollgate_counted_requests_total${requestLabels}`)).toBe(2);
  expect(valueOf(text, `tollgate_counted_tokens_total{${tokenLabels}"input"}`)).toBe(48);
  expect(valueOf(text, `tollgate_counted_tokens_total{${tokenLabels}"output"}`)).toBe(20);
});

describe("models", () => {
  const of = (modelSent: string | undefined, fields: Partial<RequestRecord> = {}) =>
    requestRecord({ modelSent, ...fields });

  test("have series of their own, with requests and tokens", async () => {
    using metrics = openMetrics();
    finish(metrics, of("small"), of("small", { usage: undefined }), of('an "odd"\nname'), of(undefined));
    const text = await metrics.text();
    expect(seriesOf(text, "tollgate_model_requests_total")).toEqual([
      'tollgate_model_requests_total{model="small"} 2',
      'tollgate_model_requests_total{model="an \\"odd\\"\\\\u000aname"} 1',
    ]);
    expect(valueOf(text, 'tollgate_model_tokens_total{model="small",direction="input"}')).toBe(1200);
    expect(valueOf(text, 'tollgate_model_tokens_total{model="small",direction="output"}')).toBe(350);
  });

  test("that the backend does not know, or with very long names, are counted as other", async () => {
    using metrics = openMetrics();
    finish(metrics, of("unknown", { status: 404 }), of("x".repeat(200)), of("known"), of("known", { status: 502 }));
    expect(seriesOf(await metrics.text(), "tollgate_model_requests_total")).toEqual([
      'tollgate_model_requests_total{model="other"} 2',
      'tollgate_model_requests_total{model="known"} 2',
    ]);
  });

  test("have at most 200 names, and the rest is counted as other", async () => {
    using metrics = openMetrics();
    finish(metrics, ...Array.from({ length: 300 }, (_, n) => of(`model-${n}`)), of("model-7"));
    const text = await metrics.text();
    expect(seriesOf(text, "tollgate_model_requests_total")).toHaveLength(201);
    expect(valueOf(text, 'tollgate_model_requests_total{model="other"}')).toBe(100);
    expect(valueOf(text, 'tollgate_model_requests_total{model="model-7"}')).toBe(2);
  });
});
