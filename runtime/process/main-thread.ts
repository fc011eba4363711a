/**
 * The main thread is shared by everything that a process does, and what it does at a stretch
 * delays all others, the making of blocks included. Long work is done in slices: all slices of one
 * turn of the event loop together get `SLICE_MS`, and of those that wait one goes on in each turn.
 */
import type { Steps } from "../../chain/steps/steps.js";

/** Most that sliced work takes of one turn of the event loop; a step in it adds its own time. */
export const SLICE_MS = 3;

/** Steps of work that wait for their turn, in order. */
const waiting: (() => void)[] = [];
let isTurnOpen = false;
let turnEndMs = 0;

/**
 * To be called between steps of long work, each well below a millisecond: waits for a later turn of
 * the event loop when this one has had its share, and costs next to nothing otherwise.
 * @throws the signal's reason where the work is not wanted any more
 */
export function breathe(signal?: AbortSignal): Promise<void> | undefined {
  signal?.throwIfAborted();
  if (!isTurnOpen) openTurn();
  // Whoever waits already comes first.
  else if (performance.now() >= turnEndMs) return nextTurn(signal);
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

async function nextTurn(signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
  });
  signal?.throwIfAborted();
}

/** A module's state, for there is one event loop and not one for each caller. */
function openTurn(): void {
  isTurnOpen = true;
  turnEndMs = performance.now() + SLICE_MS;
  setImmediate(closeTurn);
}

function closeTurn(): void {
  isTurnOpen = false;
  const next = waiting.shift();
  if (next === undefined) return;
  openTurn();
  next();
}
