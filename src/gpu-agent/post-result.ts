import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** Where samples go. */
export interface PushTarget {
  /** The endpoint itself. */
  url: string;
  key: string;
  /** Milliseconds for one request; ten seconds where it is left out. */
  deadlineMs?: number;
}

/** What became of a request, in words for the operator that hold neither the key nor anything that changes from try to try. */
export interface PostResult {
  kind: "accepted" | "key refused" | "failed";
  words: string;
}

const Accepted = Type.Object({ ok: Type.Literal(true) });
const Refused = Type.Object({ error: Type.String() });

export function answerOf(url: string, status: number, headers: Headers, text: string): PostResult {
  const body = findJson(text);
  if (status === 200 && Value.Check(Accepted, body)) return { kind: "accepted", words: `Sending samples to ${url}` };
  if (status === 401 || status === 403) {
    return { kind: "key refused", words: `${url} refuses the key (${status}): it is unknown, or not active` };
  }
  return { kind: "failed", words: failedWords(url, status, headers, body) };
}

function failedWords(url: string, status: number, headers: Headers, body: unknown): string {
  const location = headers.get("location");
  if (status >= 300 && status < 400) {
    const target = location === null ? undefined : URL.parse(location, url);
    return `${url} is the wrong address: it redirects (${status}) to ${target ? target.origin + target.pathname : "nowhere"}`;
  }
  if (status === 404 || status === 405) {
    return `${url} is the wrong address (${status}): the admin side of Tollgate does not answer there`;
  }
  if (status < 300) return `${url} is the wrong address: what answers there (${status}) is not Tollgate`;
  const said = Value.Check(Refused, body) ? `: ${body.error.slice(0, 200)}` : "";
  return `${url} answered ${status}${said}`;
}

function findJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const meanings: Readonly<Record<string, string>> = {
  timeout: "no answer in time",
  ECONNREFUSED: "nothing listens there",
  ConnectionRefused: "nothing listens there",
  ENOTFOUND: "its host name is not known",
  FailedToOpenSocket: "its host is not reachable",
  ECONNRESET: "the connection broke",
  ConnectionClosed: "the connection broke",
  EPROTO: "what answers there does not speak TLS",
  Malformed_HTTP_Response: "what answers there does not speak HTTP",
  ERR_TLS_CERT_ALTNAME_INVALID: "its TLS certificate is for another host name",
};

/** OpenSSL's names for what is wrong with a certificate, as the runtime hands them on. */
const certificateCode = /CERT|SIGNATURE|ISSUER|TLS|SSL/;

/** @param error what `fetch` threw, or "timeout" */
export function failureOf(url: string, error: unknown): PostResult {
  const code = error === "timeout" ? "timeout" : codeOf(error);
  const why = meanings[code] ?? (certificateCode.test(code) ? untrusted(code) : code);
  return { kind: "failed", words: `${url} is not reachable: ${why}` };
}

function untrusted(code: string): string {
  return `its TLS certificate is not trusted (${code}); NODE_EXTRA_CA_CERTS names a file with more authorities`;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
