/** Routes of servers that are configured by a URL. */

/** A route of a server, also of one that is reached below a path or by a key in its query. */
export function routeOf(server: string, route: string): URL {
  const url = new URL(server);
  const { pathname, searchParams } = new URL(route, url.origin);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${pathname}`;
  for (const [name, value] of searchParams) url.searchParams.append(name, value);
  return url;
}

/** A URL as `fetch` takes it: user and password become the header that they stand for. */
export function fetchable(url: URL): {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
} {
  const { username, password } = url;
  if (username === "" && password === "") return { url, headers: {} };
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  const words = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    url: bare,
    headers: { authorization: `Basic ${Buffer.from(words).toString("base64")}` },
  };
}
