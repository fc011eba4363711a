/** Whose work it is that waits for a turn of the main thread. The signal that ends the work may say so. */
import type { OfClient } from "../turns/client-lines.js";

/** Who has turns of its own: a client as `clientOf` names it, or this process. */
export interface WorkOwner extends OfClient {
  /** Of what must not wait behind whatever clients look at; such work has every second turn. */
  readonly isOwn?: boolean;
}

/** What this process does by itself. */
export const OWN_WORK: WorkOwner = { client: "", isOwn: true };

/** Of whom nothing is known: all of them are one. */
const UNKNOWN: WorkOwner = { client: "" };

const owners = new WeakMap<AbortSignal, WorkOwner>();

/** Says whose the work is that a signal ends, before the work begins. */
export function setOwner(signal: AbortSignal, owner: WorkOwner): void {
  owners.set(signal, owner);
}

/** Whose the work is that a signal ends. */
export function ownerOf(signal: AbortSignal | undefined): WorkOwner {
  return (signal === undefined ? undefined : owners.get(signal)) ?? UNKNOWN;
}

/** Makes the work that a signal ends the work of the first of others that has an owner. */
export function inheritOwner(signal: AbortSignal, from: readonly AbortSignal[]): void {
  for (const source of from) {
    const owner = owners.get(source);
    if (owner === undefined) continue;
    owners.set(signal, owner);
    return;
  }
}

/** A signal that never fires, for work that several wait for and nobody may end. */
export function endlessSignal(owner: WorkOwner): AbortSignal {
  const { signal } = new AbortController();
  setOwner(signal, owner);
  return signal;
}
