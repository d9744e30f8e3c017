/** A language-model server. */
export interface Backend {
  name: string;
  /** The address as the operator wrote it, which names it in the log. */
  url: string;
  /** Origin and path prefix; no trailing slash and no `/v1`. */
  baseUrl: string;
  /** The path of a UNIX socket; undefined: the origin says where to connect. */
  socket: string | undefined;
  apiKey: string | undefined;
  /** How many requests it gets at once; undefined: any number. */
  maxConcurrency: number | undefined;
  /** It reads one prompt at a time of which more is not in its cache; undefined: any number. */
  maxPrefillTokens?: number | undefined;
  /** Used only while the other backends of a model are full or out. */
  spill: boolean;
  /** Its 503 comes from the engine, which then has read nothing: the request may be sent to another backend. */
  retry503: boolean;
  /** Adds the models that it lists itself. */
  discover: boolean;
  /** On paths of messages too, the cached input that it reports is a part of the input. */
  cachedInInput?: boolean | undefined;
  /** The path that tells whether it is up. */
  health: string;
  /** Requests say who comes first, in this order; undefined: they do not. */
  priority?: "low_first" | "high_first" | undefined;
  /** What a client tells the engine of that kind; undefined: `pass`. */
  engineMembers?: "pass" | "drop" | undefined;
}

/** Edits that mend what certain clients send for certain engines, and an error that they read. */
export const clientRules = [
  "system_turns_to_user",
  "drop_billing_line",
  "developer_to_system",
  "function_tools_only",
  "full_context_code",
] as const;

export type ClientRule = (typeof clientRules)[number];

/** `auto`: those that the client needs in front of the engine. An empty list: none. */
export type ClientRules = "auto" | readonly ClientRule[];

/** What holds for the requests of one model. */
export interface ModelRules {
  /** It has a mode that thinks and one that does not. */
  reasoning: boolean;
  hanGuard: boolean;
  forceStreamUsage: "off" | "final" | "continuous";
  contextTokens: number;
  maxOutputTokens: number;
  /** Undefined: as its backends say. */
  kind?: "embedding" | undefined;
  clientRules: ClientRules;
  /** Who shares what the engine has cached; undefined: everyone. */
  privateCache?: "team" | "key" | undefined;
}

/** Without blanks and `*`; control characters and overrides of direction would change how what stands beside a name reads. */
export const modelNamePattern = "^[^\\s*\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]{1,200}$";

export interface Model extends ModelRules {
  /** Its name everywhere but at the backends. */
  name: string;
  /** What the backends call it. */
  servedAs: string;
  /** Asks it not to think, as lists spell it; undefined: its name with `-nonthinking`. */
  nonThinkingName?: string;
  /** Other names for it; one that ends in `*` is a prefix. Any case. */
  aliases: readonly string[];
  /** Names of backends, in the operator's order. */
  backends: readonly string[];
}

/** Which models there are, and which backends serve them: `MODELS_FILE`, or one backend and at most one model from the environment. */
export interface Catalog {
  /** At least one. */
  backends: readonly Backend[];
  models: readonly Model[];
  /** The model that a name becomes which no backend has; undefined: as `unknownNames` says. */
  defaultModel: string | undefined;
  /** `pass`: such a name goes to the first backend as it is, which judges it. `refuse`: 404. */
  unknownNames: "pass" | "refuse";
  /** Which names ask the reasoning model not to think: those of the model with `-nonthinking`, or every name with such an ending. */
  nonThinkingNames: "own" | "any";
  listAliases: boolean;
  /** What holds for requests that name no model of the list. */
  otherModels: ModelRules;
  /** Undefined: from the environment. */
  file:
    | {
        path: string;
        /** SHA-256 of its bytes, hexadecimal. */
        hash: string;
      }
    | undefined;
}

/**
 * The catalog in use: a changed file replaces it, and a request keeps the one that it began with, but for the addresses of
 * backends.
 */
export interface CurrentCatalog {
  get(): Catalog;
  /** Registers what runs after it was replaced. */
  onReplaced(listener: (catalog: Catalog) => void): void;
  /** Why the file is refused as it is now; none: it is in use. Unset where no file is read. */
  faults?: () => readonly string[];
}

/** What is known of the model that a request names: which one it is, what holds for it, and who may serve it. */
export interface Target {
  /** Undefined for a name that is not in the catalog, and for none. */
  model: Model | undefined;
  rules: ModelRules;
  /** Names of backends, in the operator's order. Empty: no backend has the model. */
  candidates: readonly string[];
}

/** A model that backends with `discover` list, and that the catalog does not have. */
export interface DiscoveredModel {
  /** The name as the backends spell it. */
  name: string;
  backends: readonly string[];
}

export interface DiscoveredModels {
  /** @param name in lower case */
  find(name: string): DiscoveredModel | undefined;
  /** In the order of the backends, and of their lists. */
  list(): readonly DiscoveredModel[];
}

/** Names the backends in the log and to operators. */
export const listBackends = ({ backends }: Pick<Catalog, "backends">): string =>
  backends.map(({ url }) => url).join(", ");
