import type { BackendStates, BackendStatus, Choice, Engine } from "../../domain/backends.ts";
import type { Change } from "../../domain/changes.ts";
import type { SubjectId } from "../../domain/keys.ts";
import type { Catalog, ClientRule, DiscoveredModels } from "../../domain/models.ts";
import type { RunningRequest, Explanation } from "../../domain/requests.ts";
import type { Log } from "../../log/log.ts";
import type { Retention } from "../../store/retention.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import type { Watch } from "../../watching/watch.ts";

/** What the handlers ask for, and the guards. */
export interface AdminDeps {
  store: Store;
  clock: WallClock;
  log: Log;
  config: {
    username: string;
    /** Lets a Prometheus server read `/metrics`; undefined: only a session does. */
    metricsToken: string | undefined;
  };
  /** By OpenID Connect; undefined: only the password. */
  signIn:
    | {
        issuer: string;
        clientId: string;
        clientSecret: string;
        /** The origin of the console, as people see it. */
        consoleUrl: string;
        scopes: string;
        name: string;
        /** The form for the password is folded. */
        isOnly: boolean;
        groupsClaim: string;
        adminGroups: readonly string[];
        viewerGroups: readonly string[];
        defaultRole: "none" | "member";
        createsTeams: boolean;
        checkMs: number;
        memberKeysDays: number;
      }
    | undefined;
  /** Has something done again and again until the server stops; it never rejects. */
  every: (ms: number, work: () => Promise<void>) => void;
  /** Signs session cookies. */
  signingKey: string;
  /** The client's address as the outermost trusted proxy saw it. */
  clientAddress: (request: Request) => string;
  metricsText: () => Promise<string>;
  metricsContentType: string;
  /** Called for each accepted POST of GPU samples. */
  gpuSamplesReceived: (stored: number, skipped: number) => void;
  inFlight: () => Promise<number>;
  /** Those of all processes of this instance, oldest first. */
  running: () => Promise<(RunningRequest & { id: string })[]>;
  /** @returns whether it ran */
  endRequest: (id: string) => Promise<boolean>;
  /** Ends the running responses of a key or user in all processes. @param at epoch milliseconds */
  endRunning: (id: SubjectId, at: number) => Promise<void>;
  catalog: () => Catalog;
  discoveredModels: DiscoveredModels["list"];
  backendStates: BackendStates["list"];
  /** In all processes and instances. */
  setDraining: (backend: string, isDraining: boolean, by: Change) => Promise<void>;
  /** Asks each backend what it is, unless that is known. @returns finds what a client needs, by its program and version */
  learnClientNeeds: () => Promise<
    (client: string, backends: readonly string[]) => { engines: readonly Engine[]; rules: ClientRule[] }
  >;
  /** Rewrites a body as the proxy would, and forwards nothing. */
  explain: (path: string, body: string, userAgent: string | null) => Promise<Explanation>;
  /** Where a request would go now; undefined: it would wait. */
  foresee: (catalog: Catalog, states: readonly BackendStatus[], candidates: readonly string[]) => Choice | undefined;
  watch: Pick<Watch<Change>, "ready" | "list" | "silence">;
  /** @returns what is wrong; null: no address is set */
  testNotice: () => Promise<string | undefined | null>;
  separatePorts: boolean;
  upstreamUrl: string;
  settings: () => {
    name: string;
    value: string | null;
    isSet: boolean;
    isSecret: boolean;
    origin: "environment" | ".env" | "default";
    allowed: string;
  }[];
  versions: { tollgate: string; commit: string; bun: string };
  retention: Retention;
  /** ADMIN_PASSWORD is set, so a start would undo a change. */
  passwordFromEnvironment: boolean;
}
