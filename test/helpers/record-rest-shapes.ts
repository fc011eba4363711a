/**
 * Records the shapes of another node's REST answers: `node record-rest-shapes.js BASE PLACES_JSON`
 * prints what `test/fixtures/rpc/sdk-rest-shapes.json` holds.
 */
import { askRoute, type Places, ROUTES, type ShapedAnswer } from "./rest-shapes.js";

const [base = "", places = "{}"] = process.argv.slice(2);
const recorded: Record<string, ShapedAnswer> = {};
for (const route of ROUTES) {
  recorded[route] = await askRoute(base, route, JSON.parse(places) as Places);
}
process.stdout.write(`${JSON.stringify(recorded, null, 1)}\n`);
