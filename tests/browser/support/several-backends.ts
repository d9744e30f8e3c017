import type { Page } from "playwright-core";

const since = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

const quiet = {
  taken_out_by: null,
  failing_since: null,
  requests_1h: 0,
  errors_1h: 0,
  first_byte_p50_ms: null,
  first_byte_p95_ms: null,
  output_tokens_per_second: null,
  cached_share: null,
  expected_cached_share: null,
  regret_share: null,
};

/** What `/api/backends` says of four backends in all states. */
export const severalBackends = {
  file_hash: "3f1c".repeat(16),
  instances: [
    { name: "gate-1/4711", file_hash: "3f1c".repeat(16) },
    { name: "gate-2/4711", file_hash: "9d0e".repeat(16) },
  ],
  backends: [
    {
      name: "gpu-a",
      url: "http://10.0.0.11:8000",
      models: ["qwen3-coder", "glm-5"],
      state: "in",
      taken_out_by: null,
      failing_since: null,
      since: since(3000),
      in_flight: 61,
      waiting: 12,
      max_concurrency: 64,
      spill: false,
      requests_1h: 12_345,
      errors_1h: 0,
      first_byte_p50_ms: 312,
      first_byte_p95_ms: 2450,
      output_tokens_per_second: 47.31,
      cached_share: 0.683,
      expected_cached_share: 0.7,
      regret_share: 0.02,
    },
    {
      name: "gpu-b",
      url: "http://10.0.0.12:8000",
      models: ["qwen3-coder"],
      state: "draining",
      since: since(2),
      in_flight: 7,
      waiting: 0,
      max_concurrency: 64,
      spill: false,
      ...quiet,
      taken_out_by: "admin",
      requests_1h: 9876,
      errors_1h: 3,
      first_byte_p50_ms: 298,
      first_byte_p95_ms: 2012,
      output_tokens_per_second: 51.2,
      cached_share: 0.7,
      expected_cached_share: 0.71,
      regret_share: 0.02,
    },
    {
      name: "gpu-c-in-the-other-building",
      url: "https://inference.gpu-c.the-other-building.example.internal:8443/openai",
      models: ["qwen3-coder"],
      state: "out",
      since: since(14),
      in_flight: 0,
      waiting: 0,
      max_concurrency: null,
      spill: false,
      ...quiet,
      requests_1h: 140,
      errors_1h: 139,
    },
    {
      name: "attic",
      url: "http://10.0.0.13:8001",
      models: ["bge-m3", "jina-v4", "whisper-large", "qwen3-tts", "phi-5"],
      state: "in",
      since: since(90),
      in_flight: 0,
      waiting: 0,
      max_concurrency: null,
      spill: true,
      ...quiet,
    },
  ],
};

/** Lets the console believe that there are several. */
export const showSeveralBackends = (page: Page, body: object = severalBackends): Promise<unknown> =>
  page.route("**/api/backends", (route) => route.fulfill({ json: body }));
