/** Methods that an operator may bound by client: those that search logs, and those that subscribe to more. */
import { type RateLimit, SEARCHED_TOO_OFTEN } from "../../rate-limit.js";
import { RpcFault } from "../errors.js";
import type { MethodEntries } from "../method.js";

/** What counts; a poll of a filter gives nothing twice: it searches the newest blocks at most. */
const LIMITED: ReadonlySet<string> = new Set([
  "eth_getFilterLogs",
  "eth_getLogs",
  "eth_newFilter",
  "eth_subscribe",
]);

/** The methods, those that count refused with LIMIT_EXCEEDED where their client calls them too often. */
export function limitedMethods(entries: MethodEntries, searches: RateLimit): MethodEntries {
  return entries.map(([name, method]) => {
    if (!LIMITED.has(name)) return [name, method];
    const run: typeof method.run = (params, context) => {
      if (!searches.take(context.client)) throw new RpcFault("LIMIT_EXCEEDED", SEARCHED_TOO_OFTEN);
      return method.run(params, context);
    };
    return [name, { ...method, run }];
  });
}
