import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** The server that receives the samples. */
export interface PushTarget {
  /** The full URL of the endpoint. */
  url: string;
  /** An API key. */
  key: string;
  /** How long one request may take; 10 seconds by default. */
  timeoutMs?: number;
}

/**
 * What became of one request. The reason is for the operator: it never contains the key, nor anything that changes from
 * one attempt to the next.
 */
export type PostResult = { kind: "accepted" } | { kind: "key rejected" | "failed"; reason: string };

const Accepted = Type.Object({ ok: Type.Literal(true) });
const Refused = Type.Object({ error: Type.String() });

export function resultOfResponse(url: string, status: number, headers: Headers, text: string): PostResult {
  const body = findJson(text);
  if (status === 200 && Value.Check(Accepted, body)) return { kind: "accepted" };
  if (status === 401 || status === 403) return { kind: "key rejected", reason: rejection(status, body) };
  return { kind: "failed", reason: failureReason(url, status, headers, body) };
}

function rejection(status: number, body: unknown): string {
  if (status === 401) return "the API key is unknown, inactive or expired (401)";
  const detail = Value.Check(Refused, body) ? body.error.slice(0, 200) : "a server in between refuses it";
  return `the API key is refused (${status}): ${detail}`;
}

function failureReason(url: string, status: number, headers: Headers, body: unknown): string {
  const location = headers.get("location");
  if (status >= 300 && status < 400) {
    const target = location === null ? undefined : URL.parse(location, url);
    return `wrong address: it redirects (${status}) to ${target ? target.origin + target.pathname : "nowhere"}`;
  }
  if (status === 404 || status === 405) return `wrong address (${status}): Tollgate's admin side is not there`;
  if (status < 300) return `wrong address (${status}): the server there is not Tollgate`;
  const detail = Value.Check(Refused, body) ? `: ${body.error.slice(0, 200)}` : "";
  return `the server responded with status ${status}${detail}`;
}

function findJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const closed = "the server closed the connection; does it speak HTTPS?";

const reasons: Readonly<Record<string, string>> = {
  timeout: "no response in time",
  ECONNREFUSED: "connection refused",
  ConnectionRefused: "connection refused",
  ENOTFOUND: "unknown host name",
  FailedToOpenSocket: "host unreachable",
  ECONNRESET: closed,
  ConnectionClosed: closed,
  EPROTO: "the server does not speak TLS",
  Malformed_HTTP_Response: "the server does not speak HTTP",
  EHOSTUNREACH: "host unreachable",
  ENETUNREACH: "network unreachable",
  EMFILE: "this process has no free file descriptor",
  ENFILE: "this host has no free file descriptor",
  ERR_TLS_CERT_ALTNAME_INVALID: "the TLS certificate is for another host name",
  CERT_HAS_EXPIRED: "the TLS certificate has expired, or this host's clock is ahead",
  CERT_NOT_YET_VALID: "the TLS certificate is not valid yet, or this host's clock is behind",
};

/** OpenSSL's names for certificate errors, as the runtime passes them on. */
const certificateCode = /CERT|SIGNATURE|ISSUER|TLS|SSL/;

/** @param error what `fetch` threw, or "timeout" */
export function resultOfError(error: unknown): PostResult {
  const code = error === "timeout" ? "timeout" : codeOf(error);
  const untrusted = `the TLS certificate is not trusted (${code}); add its authority with NODE_EXTRA_CA_CERTS`;
  return { kind: "failed", reason: reasons[code] ?? (certificateCode.test(code) ? untrusted : code) };
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
