/** Finds the page or the action of a path. */
import type { ActionRoute, ConsoleRoutes, PageRoute } from "./route.js";

/** A route that fits, with the parts of the path. */
export interface FoundRoute<Route> {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

interface Compiled<Route> {
  readonly route: Route;
  readonly pattern: RegExp;
}

/** Longest part of a path. */
const SEGMENT = "[^/]{1,256}";

/** All pages and actions. */
export class RouteTable {
  private readonly pages: readonly Compiled<PageRoute>[];
  private readonly actions: readonly Compiled<ActionRoute>[];

  constructor(routes: readonly ConsoleRoutes[]) {
    this.pages = routes.flatMap(({ pages }) => pages).map(compile);
    this.actions = routes.flatMap(({ actions }) => actions ?? []).map(compile);
  }

  /** The page of a path. */
  page(path: string): FoundRoute<PageRoute> | undefined {
    return find(this.pages, path);
  }

  /** The action of a path. */
  action(path: string): FoundRoute<ActionRoute> | undefined {
    return find(this.actions, path);
  }
}

function compile<Route extends { readonly path: string }>(route: Route): Compiled<Route> {
  const source = route.path.replace(/\{(\w+)\}/g, `(?<$1>${SEGMENT})`);
  return { route, pattern: new RegExp(`^${source}$`) };
}

function find<Route>(
  routes: readonly Compiled<Route>[],
  path: string,
): FoundRoute<Route> | undefined {
  for (const { route, pattern } of routes) {
    const match = pattern.exec(path);
    if (match !== null) return { route, params: { ...match.groups } };
  }
  return undefined;
}
