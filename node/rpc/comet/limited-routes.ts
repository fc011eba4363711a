/** Routes that an operator may bound by client: those that search, and the one that subscribes. */
import { type RateLimit, SEARCHED_TOO_OFTEN } from "../rate-limit.js";
import { busy } from "./errors.js";
import type { Route } from "./route.js";

const LIMITED: ReadonlySet<string> = new Set(["block_search", "subscribe", "tx_search"]);

/** The routes, those that count refused where their client asks for them too often. */
export function limitedRoutes(
  routes: readonly (readonly [string, Route])[],
  searches: RateLimit,
): readonly (readonly [string, Route])[] {
  return routes.map(([name, route]) => {
    if (!LIMITED.has(name)) return [name, route];
    const run: Route["run"] = (values, context) => {
      if (!searches.take(context.clientAddress)) throw busy(SEARCHED_TOO_OFTEN);
      return route.run(values, context);
    };
    return [name, { ...route, run }];
  });
}
