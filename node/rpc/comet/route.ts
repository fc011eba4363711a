/** One route of the consensus RPC: its arguments in CometBFT's order, and what answers it. */
import type { Arguments } from "./arguments.js";

/** Who asks; only WebSocket clients can be told of events. */
export interface RouteContext {
  readonly signal: AbortSignal;
  /** As `clientOf` names it; empty where it is not known. */
  readonly clientAddress: string;
  readonly client: RouteClient | undefined;
}

/** A WebSocket client as subscriptions see it. */
export interface RouteClient {
  /** The id of the request that is being answered: events carry it. */
  readonly requestId: string | number | null;
  readonly connection: EventReceiver;
}

/** Where events go. */
export interface EventReceiver {
  /** Sends a text in UTF-8, unless too much waits to be read already. */
  push(text: Buffer): "sent" | "slow" | "closed";
  /** Ends a connection that does not read, or misses events; the texts are its last ones. */
  cutOff(texts: readonly string[], cause: "slow" | "failed"): void;
  onClose(callback: () => void): void;
}

/** A route; what it throws as CometFault is answered, anything else is a fault of ours. */
export interface Route {
  /** Names of the arguments, for arrays and for the page of routes. */
  readonly parameters: readonly string[];
  /** Served over WebSocket only. */
  readonly isSocketOnly?: boolean;
  run(values: Arguments, context: RouteContext): unknown;
}

/** Routes by name. */
export type Routes = ReadonlyMap<string, Route>;

/** A route's entry. */
export function route(
  name: string,
  parameters: readonly string[],
  run: Route["run"],
): readonly [string, Route] {
  return [name, { parameters, run }];
}
