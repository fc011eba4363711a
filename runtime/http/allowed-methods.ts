/** What 405 has to tell (RFC 9110, 15.5.6): the methods that a path has. */
import type { ServerResponse } from "node:http";
import { pathPattern } from "./api-schema.js";

/**
 * Makes what sets `Allow`, in alphabetical order, on the answer to a request whose path is one of the
 * routes'.
 * @param isOpen an API without keys answers HEAD where it answers GET
 */
export function createAllowedMethods(
  routes: readonly { readonly method: string; readonly path: string }[],
  isOpen: boolean,
): (response: ServerResponse) => void {
  const known = routes.map(({ method, path }) => ({
    methods: isOpen && method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()],
    pattern: pathPattern(path),
  }));
  return (response) => {
    const path = response.req.url?.split("?", 1)[0] ?? "/";
    const methods = known.flatMap((one) => (one.pattern.test(path) ? one.methods : []));
    if (methods.length > 0)
      response.setHeader("allow", [...new Set(methods)].toSorted().join(", "));
  };
}
