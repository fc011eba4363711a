/** The gate of an HTTP API in tests that are about something else than its keys. */
import {
  hasDigest,
  type HttpAccess,
  keyDigest,
  noValidKey,
} from "../../../runtime/http/http-access.js";

/** One key that may do everything and of which nothing is written down. */
export function singleKeyAccess(key: string): HttpAccess {
  const digest = keyDigest(key);
  return {
    async identify(bearerKey) {
      if (bearerKey === undefined || !hasDigest(bearerKey, digest)) throw noValidKey();
      return { keyId: "single", scopes: "all" };
    },
    recall: () => undefined,
    record: () => Promise.resolve(),
    // No key of this gate signs anything.
    nowMs: () => 0,
  };
}
