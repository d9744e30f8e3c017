import {
  cachedTimingName,
  cacheWriteName,
  partNames,
  tokenCountNames,
  totalName,
  usageHolders,
} from "./event-usage.ts";

/** The members of an object that are followed; a count is a number at the end of the path, an id a short string. */
type Followed = Shape | ArrayShape | "count" | "id";
type Shape = ReadonlyMap<string, Followed>;
interface ArrayShape {
  element: Shape;
}

const countShape = (names: readonly string[]): Shape => new Map(names.map((name) => [name, "count"]));
const parts = Object.values(partNames);
const detailsIn = (holder: string): string[] =>
  parts.filter(({ holders }) => holders.includes(holder)).map(({ detail }) => detail);
const usageShape: Shape = new Map<string, Followed>([
  ...countShape([
    ...Object.values(tokenCountNames).flat(),
    totalName,
    ...parts.flatMap(({ names }) => names),
    cacheWriteName,
  ]),
  ...parts.flatMap(({ holders }) => holders).map((holder) => [holder, countShape(detailsIn(holder))] as const),
]);
/** No followed name is longer. */
export const maxNameLength = Math.max(
  ...[...usageShape.keys(), ...parts.map(({ detail }) => detail)].map((name) => name.length),
);
const holderShape: Shape = new Map([["usage", usageShape]]);
const identifiedShape: Shape = new Map<string, Followed>([
  ["id", "id"],
  ["usage", usageShape],
]);
/** An error is this, or a text. */
const errorShape: Shape = new Map<string, Followed>([
  ["message", "id"],
  ["type", "id"],
  ["code", "count"],
]);
const documentShape: Shape = new Map<string, Followed>([
  ...identifiedShape,
  ["type", "id"],
  ["error", errorShape],
  ...usageHolders.map((holder) => [holder, identifiedShape] as const),
  ["x_groq", holderShape],
  ["timings", countShape([cachedTimingName])],
  ["choices", { element: holderShape }],
]);

/** The part of a document that is followed. Starts before the document itself, as if that were a member. */
export type FollowedDocument = ReturnType<typeof createFollowedDocument>;

interface FollowedObject {
  shape: Shape;
  members: Record<string, unknown>;
  /** Set for an array: its only member is its latest element. */
  elements: unknown[] | undefined;
}

/** The name of an array's elements as its members. */
const elementName = "0";

export function createFollowedDocument() {
  const root: FollowedObject = { shape: new Map([["document", documentShape]]), members: {}, elements: undefined };
  /** The objects around `parent`, the outermost first. Empty only while `parent` is `root`. */
  const outer: FollowedObject[] = [];
  let parent = root;
  let name = "document";

  function set(value: unknown): void {
    if (parent.elements === undefined) parent.members[name] = value;
    else parent.elements[0] = value;
  }

  return {
    /** The next value belongs to the member of this name. */
    beginMember(next: string): void {
      name = next;
    },
    /** The next value is an element of the array that is open. */
    beginElement(): void {
      name = elementName;
    },
    /** The next value is an object. @returns false if it is not followed */
    openObject(): boolean {
      const shape = parent.shape.get(name);
      if (!(shape instanceof Map)) return false;
      const object: FollowedObject = { shape, members: {}, elements: undefined };
      set(object.members);
      outer.push(parent);
      parent = object;
      return true;
    },
    /** The same for an array. */
    openArray(): boolean {
      const shape = parent.shape.get(name);
      if (typeof shape !== "object" || !("element" in shape)) return false;
      const elements: unknown[] = [];
      set(elements);
      outer.push(parent);
      parent = { shape: new Map([[elementName, shape.element]]), members: {}, elements };
      return true;
    },
    close(): void {
      parent = outer.pop() ?? root;
    },
    /** Whether an object or array is open that is followed. */
    isOpen: (): boolean => parent !== root,
    isInArray: (): boolean => parent.elements !== undefined,
    isAtCount: (): boolean => parent.shape.get(name) === "count",
    isAtId: (): boolean => ["id", errorShape].some((kind) => parent.shape.get(name) === kind),
    /** The value of the current member, if that is followed. */
    setValue(value: unknown): void {
      // If a name comes twice, the last one counts, whatever its value.
      if (parent.shape.has(name)) set(value);
    },
    value(): unknown {
      // The counts that would show that it is not alone may still be missing.
      if (parent.shape === usageShape) parent.members[totalName] = undefined;
      return root.members.document;
    },
  };
}
