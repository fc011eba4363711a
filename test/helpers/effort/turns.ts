/** Turns of the event loop: what others get of the thread while long work is done in slices. */
import { jest } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Turns of the event loop that others get while the work is done, if each look at the time takes 1 ms. */
export async function turnsOf(work: () => unknown): Promise<number> {
  // A turn that is open still has its end by the other clock.
  await nextTurn();
  let nowMs = performance.now();
  const clock = jest.spyOn(performance, "now").mockImplementation(() => (nowMs += 1));
  const state = { isDone: false };
  const done = Promise.resolve(work()).finally(() => (state.isDone = true));
  let turns = 0;
  for (; !state.isDone; turns++) await nextTurn();
  clock.mockRestore();
  await done;
  return turns;
}
