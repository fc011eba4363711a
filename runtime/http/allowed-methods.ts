/** What 405 has to tell (RFC 9110, 15.5.6): the methods that a path has. */
import { pathPattern } from "./api-schema.js";

/**
 * The value of `Allow` for a path, in alphabetical order; undefined where no route has the path.
 * @param isOpen an API without keys answers HEAD where it answers GET
 */
export function createAllowedMethods(
  routes: readonly { readonly method: string; readonly path: string }[],
  isOpen: boolean,
): (path: string) => string | undefined {
  const known = routes.map(({ method, path }) => ({ method, pattern: pathPattern(path) }));
  return (path) => {
    const methods = known.flatMap(({ method, pattern }) =>
      pattern.test(path)
        ? isOpen && method === "get"
          ? ["GET", "HEAD"]
          : [method.toUpperCase()]
        : [],
    );
    return methods.length === 0 ? undefined : [...new Set(methods)].toSorted().join(", ");
  };
}
