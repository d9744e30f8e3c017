import { test } from "bun:test";

/**
 * Registers a test of the runtime that passes while it misbehaves. If it fails after an upgrade, the workaround in
 * `file` can go: see its "Remove when" comment and the list in WORKAROUNDS.md.
 */
export function stillNeeded(misbehaviour: string, file: string, check: () => void | Promise<void>): void {
  test(`${misbehaviour} (workaround in ${file})`, check);
}
