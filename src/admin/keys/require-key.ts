import { findCredential } from "../../domain/credential.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Store } from "../../store/store.ts";
import { ApiError } from "../http/errors.ts";

/**
 * Guard: requires an active API key.
 * @param use what the key has to be for
 * @throws ApiError 401, 403
 */
export const requireApiKey =
  ({ store }: { store: Pick<Store, "keys" | "subjects"> }, use: "gpu" | "inference") =>
  async ({ request }: { request: Request }): Promise<{ keyId: KeyId }> => {
    const key = await store.keys.findActive(findCredential(request.headers) ?? "");
    const isOut = key?.userId !== undefined && !(await store.subjects.see(key.userId)).isActive;
    if (key === undefined || isOut) throw new ApiError(401, "Invalid API key", { "www-authenticate": "Bearer" });
    const { scope = "all" } = key.rules ?? {};
    if (scope !== "all" && scope !== use) throw new ApiError(403, refusals[use]);
    return { keyId: key.id };
  };

const refusals = {
  gpu: "This API key may not post GPU samples",
  inference: "This API key may only post GPU samples",
};
