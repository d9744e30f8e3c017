import { indexOfBytes } from "../json/bytes.ts";
import type { Program } from "../../domain/requests.ts";

interface HeaderSign {
  class: string;
  header: string;
  /** What the header contains. */
  has: string;
}

interface BodySign {
  class: string;
  /** The beginning of the instructions, as a JSON member's value: within another text, the quote would be escaped. */
  begins: Uint8Array;
  /** So much of a body is searched, and a longer one not at all if the instructions may be at its end. */
  within: number;
  atEnd: boolean;
}

const bodySign = (requestClass: string, begins: string, within: number, atEnd = false): BodySign => ({
  class: requestClass,
  begins: Buffer.from(`:"${begins}`),
  within,
  atEnd,
});

/** What tells the class of a request whose client does not say it. */
const signsOf: Readonly<Record<Program, { headers: readonly HeaderSign[]; bodies: readonly BodySign[] }>> = {
  // Titles and compactions were recorded of 0.169.0; its source has the third.
  codex: {
    headers: [
      { class: "title", header: "x-codex-turn-metadata", has: '"thread_source":"thread_title"' },
      { class: "compaction", header: "x-codex-turn-metadata", has: '"request_kind":"compaction"' },
      { class: "subagent", header: "x-codex-turn-metadata", has: '"thread_source":"subagent"' },
    ],
    bodies: [],
  },
  // Recorded of 1.18.33, but for compactions, whose instructions its binary has. It names the session that started another,
  // and has its instructions first.
  opencode: {
    headers: [{ class: "subagent", header: "x-parent-session-id", has: "" }],
    bodies: [
      bodySign("title", "You are a title generator. You output ONLY a thread title.", 1024),
      bodySign("compaction", "You are a context summarization agent.", 1024),
    ],
  },
  // Recorded of 2.1.332: its own class of titles is `auxiliary`, which others have too; its conversation comes first.
  "claude-cli": {
    headers: [],
    bodies: [bodySign("title", "You are naming a coding session so the user can pick it", 32 * 1024, true)],
  },
};

/** Copilot's, whose User-Agent may be that of a library; it says of each request whether a user or an agent began it. */
const signsOfCopilot: readonly HeaderSign[] = [
  { class: "subagent", header: "x-interaction-type", has: "subagent" },
  { class: "auxiliary", header: "x-interaction-type", has: "background" },
  { class: "main", header: "x-initiator", has: "" },
];

/** Claude Code's `main`, `subagent`, `compaction` or `auxiliary`; undefined if nothing tells. */
export function classOfHeaders(headers: Headers, program: Program | undefined): string | undefined {
  const given = headers.get("x-claude-code-request-class");
  if (given !== null) return /^[\w.-]{1,40}$/.test(given) ? given.toLowerCase() : undefined;
  if (program === undefined && !headers.has("x-initiator")) return undefined;
  const signs = program === undefined ? signsOfCopilot : signsOf[program].headers;
  return signs.find(({ header, has }) => headers.get(header)?.includes(has) === true)?.class;
}

/** Searches only bodies of clients that are known to send such instructions. */
export function classOfBody(body: Uint8Array | undefined, program: Program | undefined): string | undefined {
  if (program === undefined || body === undefined) return undefined;
  return signsOf[program].bodies.find((sign) => hasSign(body, sign))?.class;
}

function hasSign(body: Uint8Array, { begins, within, atEnd }: BodySign): boolean {
  if (atEnd && body.length > within) return false;
  return indexOfBytes(body.subarray(0, within), begins, 0) !== -1;
}
