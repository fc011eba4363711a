/** Routes of servers that are configured by a URL. */

/** A route of a server, also of one that is reached below a path or by a key in its query. */
export function routeOf(server: string, route: string): URL {
  const url = new URL(server);
  const { pathname, searchParams } = new URL(route, url.origin);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${pathname}`;
  for (const [name, value] of searchParams) url.searchParams.append(name, value);
  return url;
}
