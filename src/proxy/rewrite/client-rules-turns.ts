import { contentOf, isLiteral, isString } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import { createSlot, type JsonSlot, type JsonValue, type Span } from "../json/slots.ts";
import { type FirstMessage, isInstruction } from "./conversation-slots.ts";

/** A message, or an item of `input`, while it is the latest that was read. */
interface Turn {
  value: JsonSlot;
  role: JsonSlot;
  type: JsonSlot;
  content: JsonSlot;
  /** The parts of `content`, if it is an array of texts and nothing else; they are read for turns of the head only. */
  texts: Span[] | undefined;
}

/** A rule about turns. It is told of each in order, and keeps only places. */
export interface TurnReader {
  clear: () => void;
  read: (bytes: Uint8Array, turn: Turn) => void;
  edit: (editor: JsonEditor, bytes: Uint8Array) => void;
}

/** No real head has more, and a hostile body may have millions. */
const maxTexts = 256;

export function createTurnSlot(readers: readonly TurnReader[]): JsonSlot {
  const [partType, partText, role, type] = [createSlot(), createSlot(), createSlot(), createSlot()];
  let texts: Span[] | undefined = [];
  const part = createSlot({
    members: { type: partType, text: partText },
    onValue(bytes) {
      const isText = isString(bytes, partType, "text") || isString(bytes, partType, "input_text");
      if (!isText || partText.kind !== "string" || texts === undefined || texts.length >= maxTexts) texts = undefined;
      else texts.push(contentOf(partText));
    },
  });
  const content = createSlot({
    element: part,
    onStart() {
      if (texts === undefined || texts.length > 0) texts = [];
    },
  });
  const value = createSlot({
    members: { role, type, content },
    onValue(bytes) {
      for (const reader of readers) reader.read(bytes, { value, role, type, content, texts });
    },
  });
  return createSlot({
    element: value,
    onStart() {
      for (const reader of readers) reader.clear();
    },
  });
}

const isInstructive = (bytes: Uint8Array, { value, role }: Turn): boolean =>
  value.kind === "object" && isInstruction(bytes, role);

/** Those of a conversation of months. The rest of a hostile body stays as it is. */
const maxSystemTurns = 4096;

/**
 * `system_turns_to_user`: a turn of the role `system` after the first turn that is neither system nor developer keeps its
 * place and becomes `user`: one value is edited.
 *
 * Claude Code (2.1.330, recorded) puts them into `messages`: its surroundings after the first message, later what is left of
 * the budget, plan mode and new tools. Templates that want the system prompt at the head refuse that ("System message must
 * be at the beginning", vLLM #53393); engines that move such turns to the head read the whole conversation again (vLLM
 * #56520, Ollama #18431): of the blocks of the turn before, 17 to 44 % stay, and all of them with this rule.
 */
export function systemTurnsToUser(): TurnReader {
  let isInside = false;
  let roles: Span[] = [];
  return {
    clear() {
      isInside = false;
      roles = [];
    },
    read(bytes, turn) {
      if (!isInside) isInside = !isInstructive(bytes, turn);
      else if (turn.value.kind === "object" && isString(bytes, turn.role, "system") && roles.length < maxSystemTurns) {
        roles.push({ start: turn.role.start, end: turn.role.end });
      }
    },
    edit(editor) {
      for (const role of roles) editor.replace(role, '"user"');
    },
  };
}

/** The turns at the head that hold instructions. */
const emptyRun = () => ({
  count: 0,
  start: 0,
  end: 0,
  /** The role of the first, if that is `developer`. */
  developer: undefined as Span | undefined,
  /** Without empty ones. */
  texts: [] as Span[],
  /** All they hold is text. */
  isText: true,
  hasEnded: false,
});

/** A reader that also tells which message heads the conversation after its edit. */
interface RunReader extends TurnReader {
  /** Undefined if it joins nothing. */
  findJoined: () => FirstMessage | undefined;
}

/**
 * `developer_to_system`: the leading run of `developer` and `system` turns becomes one `system` turn, its texts joined by an
 * empty line. A single turn keeps all but its role. A run with anything but texts stays as it is.
 *
 * Codex (0.169, recorded) sends no `instructions` but two `developer` items at the head of `input`. Templates of open models
 * know no such role, and Qwen's refuses a second system message (llama.cpp #20156, vLLM #49493).
 */
export function developerToSystem(isInput: boolean): RunReader {
  let run = emptyRun();
  const isJoined = (): boolean => run.count > 1 && run.isText && run.texts.length > 0;

  function join(editor: JsonEditor): void {
    const head = isInput ? '{"type":"message","role":"system","content":"' : '{"role":"system","content":"';
    let from = run.start;
    // The texts stay where they are, however long; what stands between them is replaced.
    for (const { start, end } of run.texts) {
      editor.replace({ start: from, end: start }, from === run.start ? head : String.raw`\n\n`);
      from = end;
    }
    editor.replace({ start: from, end: run.end }, '"}');
  }

  return {
    clear: () => void (run = emptyRun()),
    read(bytes, turn) {
      if (run.hasEnded) return;
      const isMessage = turn.type.kind === "absent" || isString(bytes, turn.type, "message");
      if (!isMessage || !isInstructive(bytes, turn)) {
        run.hasEnded = true;
        return;
      }
      run.count += 1;
      run.end = turn.value.end;
      if (run.count === 1) {
        run.start = turn.value.start;
        const { start, end } = turn.role;
        run.developer = isString(bytes, turn.role, "developer") ? { start, end } : undefined;
      }
      const texts = textsOf(bytes, turn);
      if (texts === undefined || run.texts.length + texts.length > maxTexts) run.isText = false;
      else run.texts.push(...texts.filter(({ start, end }) => end > start));
    },
    edit(editor) {
      if (isJoined()) join(editor);
      else if (run.count === 1 && run.developer !== undefined) editor.replace(run.developer, '"system"');
    },
    findJoined() {
      const [first, last] = [run.texts[0], run.texts.at(-1)];
      if (!isJoined() || first === undefined || last === undefined) return undefined;
      const content: JsonValue = {
        kind: "string",
        start: first.start - 1,
        end: last.end + 1,
        tail: first.start,
        count: 0,
      };
      const value: JsonValue = { kind: "object", start: run.start, end: run.end, tail: run.end, count: 2 };
      return { value, isSystem: true, content };
    },
  };
}

/** Undefined if the turn holds anything else. */
function textsOf(bytes: Uint8Array, { content, texts }: Turn): readonly Span[] | undefined {
  if (content.kind === "absent" || isLiteral(bytes, content, "null")) return [];
  if (content.kind === "string") return [contentOf(content)];
  return content.kind === "array" ? texts : undefined;
}
