import { textOf } from "./text.ts";

// Engines over HTTP, with prefix caches of what their prompts really say, each in blocks as engines have them, that forget
// what was used least recently, and that read one prompt at a time. Time runs faster than it does.
// `bun tests/bench/routing/live-engines.ts OPTIONS`, as JSON; it prints a line once all listen.

export interface LiveEnginesOptions {
  ports: readonly number[];
  /** How many seconds pass in one. */
  speed: number;
  /** Of each engine, as a share. */
  speeds: readonly number[];
  tokensPerSecond: number;
  cacheTokens: number;
}

interface Chat {
  stream?: boolean;
  max_tokens?: number;
  /** Its later name, which some routers make of it. */
  max_completion_tokens?: number;
  messages: { content: string }[];
}

const [blockCharacters, charactersPerToken] = [1024, 4];

/** Of one stream, alone. */
const outputPerSecond = 60;

class LiveEngine {
  /** Blocks by a hash of all up to their end, least recently used first. */
  readonly #cache = new Set<bigint>();
  #readyAt = 0;
  #writing = 0;

  constructor(
    readonly options: LiveEnginesOptions,
    readonly share: number,
  ) {}

  /** @returns resolves once the prompt is read */
  async read(prompt: string): Promise<{ tokens: number; cached: number }> {
    const turn = Promise.withResolvers<{ tokens: number; cached: number }>();
    this.#waiting.push({ blocks: blocksOf(prompt), tokens: Math.ceil(prompt.length / charactersPerToken), turn });
    if (this.#waiting.length === 1) this.#readNext();
    return turn.promise;
  }
  readonly #waiting: {
    blocks: readonly bigint[];
    tokens: number;
    turn: PromiseWithResolvers<{ tokens: number; cached: number }>;
  }[] = [];

  #readNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const { blocks, tokens, turn } = next;
    let had = 0;
    while (had < blocks.length && this.#cache.has(blocks[had] ?? 0n)) had += 1;
    const cached = Math.min(tokens - 1, (had * blockCharacters) / charactersPerToken);
    this.#keep(blocks);
    const { tokensPerSecond, speed } = this.options;
    const ms = ((tokens - cached) / (tokensPerSecond * this.share * speed)) * 1000;
    // Timers are late; what follows must not be.
    this.#readyAt = Math.max(performance.now(), this.#readyAt) + ms;
    setTimeout(() => {
      this.#waiting.shift();
      turn.resolve({ tokens, cached });
      this.#readNext();
    }, this.#readyAt - performance.now());
  }

  #keep(blocks: readonly bigint[]): void {
    // From the end, so that beginnings are forgotten last.
    for (const block of blocks.toReversed()) {
      this.#cache.delete(block);
      this.#cache.add(block);
    }
    const most = (this.options.cacheTokens * charactersPerToken) / blockCharacters;
    for (const block of this.#cache) {
      if (this.#cache.size <= most) return;
      this.#cache.delete(block);
    }
  }

  async write(tokens: number): Promise<void> {
    this.#writing += 1;
    const perSecond = Math.max(15, outputPerSecond / (1 + this.#writing / 40)) * this.share;
    await Bun.sleep((tokens / perSecond / this.options.speed) * 1000);
    this.#writing -= 1;
  }
}

function blocksOf(prompt: string): bigint[] {
  const blocks: bigint[] = [];
  let hash = 0n;
  for (let at = 0; at + blockCharacters <= prompt.length; at += blockCharacters) {
    hash = Bun.hash.xxHash64(prompt.slice(at, at + blockCharacters), hash);
    blocks.push(hash);
  }
  return blocks;
}

async function respond(engine: LiveEngine, chat: Chat): Promise<Response> {
  const { stream, messages } = chat;
  const tokens = chat.max_completion_tokens ?? chat.max_tokens;
  if (tokens === undefined) throw new Error("A request came without a limit of its output");
  const prompt = messages.map(({ content }) => content).join("");
  const read = engine.read(prompt);
  const text = textOf(Bun.hash.xxHash32(prompt.slice(-1024)), tokens * charactersPerToken);
  const usageOf = (input: Awaited<typeof read>): object => ({
    prompt_tokens: input.tokens,
    completion_tokens: tokens,
    total_tokens: input.tokens + tokens,
    prompt_tokens_details: { cached_tokens: Math.floor(input.cached) },
  });
  const chunk = (fields: object): string =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", ...fields })}\n\n`;
  const delta = (content: string, reason: string | null): object => ({
    choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: reason }],
  });
  if (stream !== true) {
    const input = await read;
    await engine.write(tokens);
    const message = { role: "assistant", content: text };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return Response.json({
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices,
      usage: usageOf(input),
    });
  }
  const encoder = new TextEncoder();
  const events = new ReadableStream<Uint8Array>({
    async start(controller) {
      const input = await read;
      controller.enqueue(encoder.encode(chunk(delta(text.slice(0, charactersPerToken), null))));
      await engine.write(tokens);
      const last = chunk({ ...delta(text.slice(charactersPerToken), "stop"), usage: usageOf(input) });
      controller.enqueue(encoder.encode(`${last}data: [DONE]\n\n`));
      controller.close();
    },
  });
  return new Response(events, { headers: { "content-type": "text/event-stream" } });
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? "") as LiveEnginesOptions;
  for (const [index, port] of options.ports.entries()) {
    const engine = new LiveEngine(options, options.speeds[index] ?? 1);
    Bun.serve({
      hostname: "127.0.0.1",
      port,
      idleTimeout: 0,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === "/v1/chat/completions") return respond(engine, (await request.json()) as Chat);
        // vllm-router asks workers for the tokens of a prompt, and does without.
        if (request.method === "POST") return new Response("Not found", { status: 404 });
        const model = { id: "m", object: "model", created: 1, owned_by: "bench", max_model_len: 1_000_000 };
        if (pathname === "/v1/models") return Response.json({ object: "list", data: [model] });
        // What routers ask of their workers.
        return Response.json({ model_path: "m", served_model_name: "m", tokenizer_path: "", is_generation: true });
      },
    });
  }
  process.stdout.write("ready\n");
}
