/** What work leaves behind at a signal that outlives it. */
import { getEventListeners } from "node:events";

/** Listeners of a signal and signals that follow it, over or not: Node keeps those in a set of its own. */
export function leftBehind(signal: AbortSignal): number {
  const own = Object.getOwnPropertySymbols(signal).find(
    ({ description }) => description === "kDependantSignals",
  );
  const followers: unknown = own === undefined ? undefined : Reflect.get(signal, own);
  // Its prototype is none of ours.
  const isSet = typeof followers === "object" && followers !== null;
  const count = isSet ? Number(Reflect.get(followers, "size")) : 0;
  return getEventListeners(signal, "abort").length + count;
}
