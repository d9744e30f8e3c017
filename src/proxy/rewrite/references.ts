import { type StoredFolder, storedId } from "../../domain/usage-event.ts";
import { findString, isNameInAnyCase } from "../json/bytes.ts";
import { createRepeatedSlot, type RepeatedSlot } from "../json/slots.ts";
import type { NamingSlots } from "./opening.ts";

/** A member of a body, at its top, whose value is an id, a list of ids, or an object with an `id`. */
export interface Reference {
  member: string;
  /** What the ids are of. */
  folder: StoredFolder | "responses";
}

const fileReferences: readonly Reference[] = [
  { member: "file_id", folder: "files" },
  { member: "file_ids", folder: "files" },
];

/** What the bodies of each folder refer to. */
export const referencesOf: Partial<Record<StoredFolder | "responses", readonly Reference[]>> = {
  responses: [
    { member: "previous_response_id", folder: "responses" },
    { member: "conversation", folder: "conversations" },
  ],
  batches: [{ member: "input_file_id", folder: "files" }],
  vector_stores: fileReferences,
  containers: fileReferences,
  "fine_tuning/jobs": [
    { member: "training_file", folder: "files" },
    { member: "validation_file", folder: "files" },
  ],
  threads: [{ member: "assistant_id", folder: "assistants" }],
};

export interface ReferenceSlots extends Reference {
  value: RepeatedSlot;
  /** Its elements, or its members `id`. */
  inner: RepeatedSlot;
}

/** OpenAI takes as many files at once. */
const maxReferences = 2000;

/** @param maxDuplicates of the member */
export function createReferenceSlots(reference: Reference, maxDuplicates: number): ReferenceSlots {
  const inner = createRepeatedSlot(maxReferences);
  const value = createRepeatedSlot(maxDuplicates, {
    element: inner.slot,
    members: { id: inner.slot },
    onOtherMember: (bytes, start, end) => (isNameInAnyCase(bytes, start, end, "id") ? inner.slot : undefined),
  });
  return { ...reference, value, inner };
}

export function conversationIn(references: readonly ReferenceSlots[]): NamingSlots | undefined {
  const found = references.find(({ member }) => member === "conversation");
  return found && { value: found.value.slot, id: found.inner.slot };
}

/** Without what is too long for an id, and what is no text, which backends refuse. @returns what is referred to, by `storedId` */
export const referencesIn = (bytes: Uint8Array, references: readonly ReferenceSlots[]): string[] =>
  references.flatMap(({ folder, value, inner }) =>
    [...value.values, ...inner.values]
      .map((one) => findString(bytes, one))
      .filter((id) => id !== undefined)
      .map((id) => storedId(folder, id)),
  );
