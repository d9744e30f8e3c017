import { createSignal } from "solid-js";
import { api, ApiError, responseBody } from "../client.ts";
import { now } from "../lib/server-clock.ts";
import { beginSession } from "../lib/session.ts";

/** Who signs people in beside the password; null: nobody, as far as the server answers. */
export const findProvider = () =>
  responseBody(api.login.get()).then(
    ({ provider }) => provider,
    () => null,
  );

export type Provider = NonNullable<Awaited<ReturnType<typeof findProvider>>>;

export type Login = ReturnType<typeof createLogin>;

/** The state of a form that logs in. */
export function createLogin() {
  const [problem, setProblem] = createSignal<string>();
  const [busy, setBusy] = createSignal(false);
  const [blockedUntil, setBlockedUntil] = createSignal(0);

  const showProblem = (error: unknown): void => {
    const waitSeconds = error instanceof ApiError && error.status === 429 ? error.retryAfterSeconds : 0;
    if (waitSeconds > 0) setBlockedUntil(now() + waitSeconds * 1000);
    setProblem(error instanceof ApiError ? loginProblem(error) : String(error));
  };

  return {
    problem,
    /** How long the server accepts no further attempt. */
    secondsLeft: () => Math.max(0, Math.ceil((blockedUntil() - now()) / 1000)),
    busy,
    /** @returns whether there is a session now */
    async submit(username: string, password: string): Promise<boolean> {
      setBusy(true);
      setProblem(undefined);
      try {
        await logIn(username, password);
        return true;
      } catch (error) {
        showProblem(error);
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}

async function logIn(username: string, password: string): Promise<void> {
  const body = await responseBody(api.login.post({ username, password }));
  await checkCookie();
  beginSession({ username: body.username, csrfToken: body.csrf_token });
}

/** Some browsers drop a Secure cookie even on localhost. */
async function checkCookie(): Promise<void> {
  try {
    await responseBody(api.me.get());
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw new ApiError(0, cookieDropped);
    throw error;
  }
}

const cookieDropped =
  "The password is correct, but the browser did not keep the session cookie. Open this page over HTTPS, or on localhost in another browser";

function loginProblem({ status, message }: ApiError): string {
  if (status === 401) return "Wrong username or password.";
  if (status === 429) return "Too many attempts. Try again later.";
  return `${message}.`;
}
