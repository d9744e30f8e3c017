import { expect, test } from "bun:test";
import { parseScript, type Script, ScriptError } from "./script.ts";

const validScripts: Record<string, Script> = {
  "": {},
  " ; ;": {},
  "slow-head=500ms": { slowHeadMs: 500 },
  "slow-head=1.5s": { slowHeadMs: 1500 },
  "slow-head=forever": { slowHeadMs: Infinity },
  "gap=2s@3; gap=10ms@0": {
    gaps: [
      { afterFrame: 3, pauseMs: 2000 },
      { afterFrame: 0, pauseMs: 10 },
    ],
  },
  "die@5": { cut: { afterFrame: 5, how: "close", insideNext: false } },
  "reset-mid-frame@3": { cut: { afterFrame: 2, how: "reset", insideNext: true } },
  "huge-frame=50MB": { hugeTokenBytes: 50 * 1024 * 1024 },
  "body=64KB": { bodyBytes: 65_536 },
  "usage=12,34,5": { usage: { inputTokens: 12, outputTokens: 34, cachedInputTokens: 5 } },
  "usage=12,34;no-done": { usage: { inputTokens: 12, outputTokens: 34 }, noDone: true },
  "status=503;header=retry-after: 5;header=x-at: a@1.example": {
    status: 503,
    headers: [
      ["retry-after", "5"],
      ["x-at", "a@1.example"],
    ],
  },
  "wrong-length=-5": { wrongLengthBy: -5 },
  "204": { status: 204 },
  "rate=50;tokens=7": { framesPerSecond: 50, tokens: 7 },
};

for (const [text, script] of Object.entries(validScripts)) {
  test(`${JSON.stringify(text)} is parsed`, () => {
    expect(parseScript(text)).toEqual(script);
  });
}

for (const text of [
  "dye@5",
  "gap=2@3",
  "slow-head",
  "huge-frame=big",
  "usage=1",
  "status=",
  "header=none",
  "constructor",
  "die@x",
]) {
  test(`${JSON.stringify(text)} is a ScriptError`, () => {
    expect(() => parseScript(text)).toThrow(ScriptError);
  });
}
