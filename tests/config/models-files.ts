/** All members, and names that objects would move to the front. Needs GPU_B_KEY. */
export const withTwoBackends = `
backends:
  gpu-b: { url: "http://10.0.0.12:8000/prefix/v1/", api_key_env: GPU_B_KEY, max_concurrency: 64, spill: true,
           retry_503: true, discover: true, health: /ready }
  7:
    url: unix:/run/backend.sock
models:
  Coder/Large:
    backends: ["7", gpu-b]
    served_as: vendor/coder large
    aliases: [claude-*, gpt-5]
    reasoning: true
    han_guard: false
    force_stream_usage: off
    client_rules: auto
    context_tokens: 262144
    max_output_tokens: 32768
  12: { backends: [gpu-b] }
default_model: CODER/large
list_aliases: true
`;
