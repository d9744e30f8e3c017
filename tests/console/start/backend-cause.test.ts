import { expect, test } from "bun:test";
import { backendCauseText } from "../../../console/src/start/backend-cause.ts";

test.each([
  ["ECONNREFUSED", "the connection is refused"],
  ["status_503", "it responds with status 503"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "its certificate is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)"],
  ["CERT_HAS_EXPIRED", "its certificate has expired"],
  ["EWHATEVER", "EWHATEVER"],
  [null, "the cause is unknown"],
])("the cause %p is: %s", (cause, text) => {
  expect(backendCauseText(cause)).toBe(text);
});
