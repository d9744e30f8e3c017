/** In words: the causes that a probe of the backend may have. */
const causes: Readonly<Record<string, string>> = {
  timeout: "no response within 2 seconds",
  ECONNREFUSED: "the connection is refused",
  ConnectionRefused: "the connection is refused",
  ENOTFOUND: "the host name is unknown",
  FailedToOpenSocket: "the host cannot be reached",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ECONNRESET: "it closes the connection before it responds",
  ConnectionClosed: "it closes the connection before it responds",
  EPROTO: "it does not speak TLS",
  not_http: "its response is not HTTP",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
  EMFILE: "Tollgate is out of file descriptors",
  ENFILE: "the machine is out of file descriptors",
};

/** Why the backend is not usable, without a full stop. @param cause as in `GET /api/overview` */
export function backendCauseText(cause: string | null): string {
  if (cause === null || cause === "unknown") return "the cause is unknown";
  const known = causes[cause];
  if (known !== undefined) return known;
  if (cause.startsWith("status_")) return `it responds with status ${cause.slice("status_".length)}`;
  return /CERT|SIGNATURE|ISSUER/.test(cause) ? `its certificate is not trusted (${cause})` : cause;
}
