/**
 * The main thread is shared by everything that a process does, and what it does at a stretch
 * delays all others, the making of blocks included. Long work is done in slices: all slices of one
 * turn of the event loop together get `SLICE_MS`, and of those that wait one goes on in each turn:
 * every second time of the process' own work, and of both kinds one client after the other.
 */
import type { Steps } from "../../chain/steps/steps.js";
import { ClientLines, type OfClient } from "../turns/client-lines.js";
import { whenAborted } from "./task.js";
import { ownerOf, type WorkOwner } from "./work-owner.js";

/** Most that sliced work takes of one turn of the event loop; a step in it adds its own time. */
export const SLICE_MS = 3;

/** A step of work that waits for its turn. */
interface Waiting extends OfClient {
  readonly goOn: () => void;
}

/** All that wait. A module's state, for there is one event loop and not one for each caller. */
const lines = { own: new ClientLines<Waiting>(), others: new ClientLines<Waiting>() };
let isOwnNext = true;
let isTurnOpen = false;
let turnEndMs = 0;

/**
 * To be called between steps of long work, each well below a millisecond: waits for a later turn of
 * the event loop when this one has had its share, and costs next to nothing otherwise.
 * @param signal ends the wait at once
 * @param owner whose the work is; by default who owns the signal
 * @throws the signal's reason where the work is not wanted any more
 */
export function breathe(signal?: AbortSignal, owner?: WorkOwner): Promise<void> | undefined {
  signal?.throwIfAborted();
  if (!isTurnOpen) openTurn();
  // Whoever waits already comes first.
  else if (performance.now() >= turnEndMs) return nextTurn(signal, owner ?? ownerOf(signal));
  return undefined;
}

/** Does work in steps, breathing between them. @throws the signal's reason, and what the work throws */
export async function doBreathing<Result>(
  steps: Steps<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    const pause = breathe(signal);
    if (pause !== undefined) await pause;
  }
}

function nextTurn(signal: AbortSignal | undefined, owner: WorkOwner): Promise<void> {
  const line = owner.isOwn === true ? lines.own : lines.others;
  const { client } = owner;
  return new Promise((resolve, reject) => {
    if (signal === undefined) {
      line.add({ client, goOn: resolve });
      return;
    }
    const waiting: Waiting = {
      client,
      goOn: () => {
        leave();
        resolve();
      },
    };
    const leave = whenAborted(signal, () => {
      line.remove(waiting);
      reject(signal.reason);
    });
    line.add(waiting);
  });
}

function openTurn(): void {
  isTurnOpen = true;
  turnEndMs = performance.now() + SLICE_MS;
  setImmediate(closeTurn);
}

function closeTurn(): void {
  isTurnOpen = false;
  const [first, second] = isOwnNext ? [lines.own, lines.others] : [lines.others, lines.own];
  isOwnNext = !isOwnNext;
  const next = first.next() ?? second.next();
  if (next === undefined) return;
  openTurn();
  next.goOn();
}
