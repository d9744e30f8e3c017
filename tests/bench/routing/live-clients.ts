import type { Turn } from "./engine.ts";
import { type Result, type Scenario, startSession } from "./model.ts";
import { textOf } from "./text.ts";

export interface LiveResult extends Result {
  failed: number;
}

interface LiveTarget {
  /** Of `/v1`. */
  url: string;
  key: string;
}

/** A conversation as its client has it. */
interface Conversation {
  id: number;
  messages: string[];
  tokens: number;
}

const charactersPerToken = 4;

/**
 * The sessions of a scenario as clients over HTTP.
 * @param speed how many seconds pass in one
 * @param seconds how long, in seconds that pass for the clock on the wall
 */
export async function runClients(
  { url, key }: LiveTarget,
  scenario: Scenario,
  { seed, seconds, speed }: { seed: number; seconds: number; speed: number },
): Promise<LiveResult> {
  const startedAt = performance.now();
  const now = (): number => ((performance.now() - startedAt) / 1000) * speed;
  const end = new AbortController();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const timeline = {
    get now() {
      return now();
    },
    at(time: number, happen: () => void): void {
      const timer = setTimeout(
        () => {
          timers.delete(timer);
          happen();
        },
        ((time - now()) / speed) * 1000,
      );
      timers.add(timer);
    },
  };
  const conversations = new Map<number, Conversation>();
  const counts = { served: 0, failed: 0, input: 0, cached: 0 };
  const waits: number[] = [];

  async function take(turn: Turn): Promise<void> {
    const { session, conversation, program, sharedTokens, promptTokens } = turn;
    let own = conversations.get(session);
    if (own?.id !== conversation) {
      const system = { role: "system", content: textOf(program + 1, sharedTokens * charactersPerToken) };
      own = { id: conversation, messages: [JSON.stringify(system)], tokens: sharedTokens };
      conversations.set(session, own);
    }
    const seedOfText = conversation * 1009 + own.messages.length;
    const content = textOf(seedOfText, Math.max(8, promptTokens - own.tokens) * charactersPerToken);
    own.messages.push(JSON.stringify({ role: "user", content }));
    const answer = await send(turn, own);
    own.messages.push(JSON.stringify({ role: "assistant", content: answer }));
    own.tokens = promptTokens + turn.outputTokens;
  }

  /** Until it is answered. */
  async function send(turn: Turn, { messages }: Conversation): Promise<string> {
    const { conversation, outputTokens, isWhole, arrivedAt } = turn;
    const body = `{"model":"m","stream":${!isWhole},"max_tokens":${outputTokens},"messages":[${messages.join(",")}]}`;
    for (;;) {
      try {
        const response = await fetch(`${url}/v1/chat/completions`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            authorization: `Bearer ${key}`,
            "x-session-id": `session-${conversation}`,
          },
          body,
          signal: end.signal,
        });
        if (!response.ok) throw new Error(`${response.status} ${(await response.text()).slice(0, 200)}`);
        const text = await readText(response, isWhole ? undefined : () => waits.push(now() - arrivedAt));
        const { answer, input, cached } = isWhole ? readWhole(text) : readEvents(text);
        counts.served += 1;
        counts.input += input;
        counts.cached += cached;
        return answer;
      } catch (error) {
        if (end.signal.aborted) throw error;
        counts.failed += 1;
        if (counts.failed <= 3) process.stderr.write(`${String(error)}\n`);
        await Bun.sleep(1000 / speed);
      }
    }
  }

  const runs = Array.from({ length: scenario.sessions }, (_, session) =>
    startSession(scenario, {
      seed,
      session,
      timeline,
      send: (turn, onEnd) => void take(turn).then(onEnd, () => {}),
    }),
  );
  await Bun.sleep(seconds * 1000);
  end.abort();
  for (const timer of timers) clearTimeout(timer);
  const p95 = waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.95)] ?? 0;
  return runs.length === 0 ? noResult : { ...counts, cached: counts.cached / counts.input, p95 };
}

const noResult: LiveResult = { served: 0, failed: 0, cached: 0, p95: 0 };

async function readText(response: Response, onFirst: (() => void) | undefined): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    if (text === "") onFirst?.();
    text += decoder.decode(bytes, { stream: true });
  }
  return text;
}

interface Answer {
  answer: string;
  input: number;
  cached: number;
}

interface Body {
  choices: { delta?: { content: string }; message?: { content: string } }[];
  usage?: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
}

const answerOf = (bodies: readonly Body[]): Answer => {
  const usage = bodies.findLast((one) => one.usage !== undefined)?.usage;
  return {
    answer: bodies.map(({ choices: [choice] }) => (choice?.delta ?? choice?.message)?.content ?? "").join(""),
    input: usage?.prompt_tokens ?? 0,
    cached: usage?.prompt_tokens_details.cached_tokens ?? 0,
  };
};

const readWhole = (text: string): Answer => answerOf([JSON.parse(text) as Body]);

const readEvents = (text: string): Answer =>
  answerOf(
    text
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice("data: ".length)) as Body),
  );
