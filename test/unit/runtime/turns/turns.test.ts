/** Turns: clients have theirs one after the other, however many each of them waits for. */
import { expect, it } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type TurnBounds, Turns } from "../../../../runtime/turns/turns.js";

const NEVER = new AbortController().signal;

function start(maxWaiting: number, bounds: Partial<TurnBounds> = {}) {
  const full = () => new Error("full");
  const turns = new Turns({ maxRunning: 1, maxWaiting, full, ...bounds });
  const order: string[] = [];
  const ask = async (name: string, client?: string, signal = NEVER) => {
    try {
      const leave = await turns.enter(signal, client);
      order.push(name);
      await nextTurn();
      leave();
    } catch (error) {
      order.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return { turns, order, ask };
}

it("are of one client after the other, and of each in order", async () => {
  const { order, ask } = start(10);
  await Promise.all([
    ask("a1", "a"),
    ask("a2", "a"),
    ask("a3", "a"),
    ask("b1", "b"),
    ask("b2", "b"),
    ask("c1", "c"),
  ]);
  expect(order).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"]);
});

it("are refused to the last in the longest line where too many wait", async () => {
  const { turns, order, ask } = start(3);
  const all = ["a1", "a2", "a3", "a4", "a5"].map((name) => ask(name, "a"));
  all.push(ask("b1", "b"));
  expect(turns.counts).toEqual({ running: 1, waiting: 3 });
  await Promise.all(all);
  expect(order).toEqual(["a1", "a5: full", "a4: full", "a2", "b1", "a3"]);
  expect(turns.counts).toEqual({ running: 0, waiting: 0 });
});

it("are left by who has gone, and come in order where nobody is told apart", async () => {
  const { turns, order, ask } = start(3);
  const gone = new AbortController();
  const all = [ask("1"), ask("2", undefined, gone.signal), ask("3"), ask("4"), ask("5")];
  gone.abort("gone");
  await Promise.all(all);
  expect(order).toEqual(["1", "5: full", "2: gone", "3", "4"]);
  expect(turns.counts).toEqual({ running: 0, waiting: 0 });
});

it("are no more than its share at a time for a client of another machine, and all for this one", async () => {
  const { turns, order, ask } = start(10, { maxRunning: 2, share: 1 / 2 });
  const many = ["a1", "a2", "a3"].map((name) => ask(name, "10.0.0.1"));
  expect(turns.counts).toEqual({ running: 1, waiting: 2 });
  const other = ask("b1", "10.0.0.2");
  expect(turns.counts).toEqual({ running: 2, waiting: 2 });
  await Promise.all([...many, other]);
  expect(order).toEqual(["a1", "b1", "a2", "a3"]);
  const own = ["c1", "c2", "c3"].map((name) => ask(name, "127.0.0.1"));
  expect(turns.counts).toEqual({ running: 2, waiting: 1 });
  await Promise.all(own);
  expect(turns.counts).toEqual({ running: 0, waiting: 0 });
});

it("are waited for no longer than is said, by all or by one", async () => {
  const { turns, order, ask } = start(3, { maxWaitMs: 1 });
  const leave = await turns.enter(NEVER);
  await ask("too long");
  const patient = turns.run(NEVER, async () => void order.push("in time"), "b", 600_000);
  leave();
  await patient;
  expect(order).toEqual(["too long: full", "in time"]);
  expect(turns.counts).toEqual({ running: 0, waiting: 0 });
});
