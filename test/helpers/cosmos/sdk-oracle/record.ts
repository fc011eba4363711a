/**
 * Records how another node answers: `record(BASE, PLACES)` gives what `test/fixtures/rpc/sdk-rest.json`
 * holds.
 */
import { ROUTES } from "./routes.js";
import { type Answer, askRoute, type Places } from "./shapes.js";

/** Answers of a node by route. */
export async function record(
  base: string,
  places: Places,
): Promise<Readonly<Record<string, Answer>>> {
  const recorded: Record<string, Answer> = {};
  for (const route of ROUTES) recorded[route] = await askRoute(base, route, places);
  return recorded;
}
