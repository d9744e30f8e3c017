import type { AdminDeps } from "../http/deps.ts";
import { findBearer } from "../../domain/credential.ts";
import { alertsYaml } from "../../watching/prometheus-alerts.ts";
import { authenticationRequired } from "../http/errors.ts";
import { equalSecrets } from "../session/secrets.ts";
import type { Sessions } from "../session/session.ts";

export interface MetricsGuardDeps {
  sessions: Pick<Sessions, "find">;
  /** Without a token only a session is accepted. */
  config: { metricsToken: string | undefined };
}

/** Whether a request has METRICS_TOKEN as a bearer token, or a live session that may see of others. */
export async function isAllowed({ sessions, config }: MetricsGuardDeps, headers: Headers): Promise<boolean> {
  const token = findBearer(headers);
  if (token !== undefined && config.metricsToken !== undefined && equalSecrets(token, config.metricsToken)) return true;
  const session = await sessions.find(headers);
  return session !== undefined && session.role !== "member";
}

/** Guard. @throws ApiError 401 */
export const requireMetricsTokenOrSession =
  (deps: MetricsGuardDeps) =>
  async ({ request: { headers } }: { request: Request }): Promise<void> => {
    if (!(await isAllowed(deps, headers))) throw authenticationRequired();
  };

export const getMetrics =
  ({ metricsText, metricsContentType }: AdminDeps) =>
  async (): Promise<Response> =>
    new Response(await metricsText(), { headers: { "content-type": metricsContentType } });

export const getAlerts = (): Response =>
  new Response(alertsYaml(), { headers: { "content-type": "text/plain; charset=utf-8" } });
