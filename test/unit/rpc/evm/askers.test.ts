/** Clients that ask for the same text wait in their own lines, and the first turn is everybody's. */
import { expect, it } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Askers } from "../../../../node/rpc/evm/json/askers.js";
import { LargeLane } from "../../../../node/rpc/evm/large-lane.js";

const MOST_WAITING = 256;
const [MANY, OTHER, THIRD] = ["192.0.2.1", "198.51.100.1", "203.0.113.1"];

/** A lane in which so many wait, of one client. */
async function startLane(waiting: number) {
  const lane = new LargeLane();
  const { signal } = new AbortController();
  const leaving = [await lane.enter(signal, MANY), await lane.enter(signal, MANY)];
  const line = Array.from({ length: waiting }, () => lane.enter(signal, MANY));
  for (const one of line) one.catch(() => undefined);
  const from = (client: string, ending = new AbortController()) => {
    return { client, signal: ending.signal };
  };
  return { lane, from, leave: () => leaving.pop()?.() };
}

it("have the turn that comes first, and leave the other lines with it", async () => {
  const { lane, from, leave } = await startLane(10);
  const askers = new Askers(from(MANY));
  const turn = askers.enter(lane, () => undefined);
  askers.add(from(OTHER));
  askers.add(from(OTHER));
  expect(lane.counts).toEqual({ running: 2, waiting: 12 });
  leave();
  leave();
  const giveBack = await turn;
  await nextTurn();
  expect(lane.counts).toEqual({ running: 2, waiting: 9 });
  giveBack();
  expect(lane.counts).toEqual({ running: 2, waiting: 8 });
});

it("keep one turn where two come at once", async () => {
  const lane = new LargeLane();
  const ending = new AbortController().signal;
  const askers = new Askers({ client: MANY, signal: ending });
  askers.add({ client: OTHER, signal: ending });
  (await askers.enterAnyway(lane))();
  await nextTurn();
  expect(lane.counts).toEqual({ running: 0, waiting: 0 });
});

it("wait on where one of them goes or is refused, and are told of the refusal", async () => {
  const { lane, from } = await startLane(MOST_WAITING - 1);
  const [going, staying] = [new AbortController(), new AbortController()];
  let leftCount = 0;
  const askers = new Askers(from(THIRD, going));
  const turn = askers.enter(lane, () => (leftCount += 1)).catch((error: unknown) => error);
  askers.add(from(OTHER, staying));
  // One of the longest line had to go.
  expect(lane.counts.waiting).toBe(MOST_WAITING);
  askers.add(from(MANY));
  expect(lane.counts.waiting).toBe(MOST_WAITING);
  going.abort(new Error("gone"));
  await nextTurn();
  expect([lane.counts.waiting, leftCount]).toEqual([MOST_WAITING - 1, 0]);
  staying.abort(new Error("gone"));
  expect(await turn).toMatchObject({ code: "LIMIT_EXCEEDED" });
  expect(leftCount).toBe(0);
});

it("leave with the last of them", async () => {
  const { lane, from } = await startLane(1);
  const endings = [new AbortController(), new AbortController(), new AbortController()];
  let leftCount = 0;
  const [first, second, third] = endings;
  const askers = new Askers(from(MANY, first));
  const turn = askers.enter(lane, () => (leftCount += 1));
  askers.add(from(MANY, second));
  askers.add(from(OTHER, third));
  first?.abort(new Error("gone"));
  third?.abort(new Error("gone"));
  await nextTurn();
  expect([lane.counts.waiting, leftCount]).toEqual([2, 0]);
  second?.abort(new Error("the last is gone"));
  expect(leftCount).toBe(1);
  await expect(turn).rejects.toThrow("gone");
  expect(lane.counts.waiting).toBe(1);
});

it("wait in a few lines, however many clients they are, and the others when one of these goes", async () => {
  const { lane, from, leave } = await startLane(0);
  const endings = Array.from({ length: 20 }, () => new AbortController());
  const [first, ...others] = endings.map((ending, index) => from(`10.0.0.${index}`, ending));
  if (first === undefined) throw new Error("nobody asks");
  const askers = new Askers(first);
  const turn = askers.enter(lane, () => undefined);
  for (const other of others) askers.add(other);
  expect(lane.counts.waiting).toBe(8);
  for (const ending of endings.slice(0, 15)) ending.abort(new Error("gone"));
  await nextTurn();
  expect(lane.counts.waiting).toBe(5);
  leave();
  await turn;
  await nextTurn();
  expect(lane.counts).toEqual({ running: 2, waiting: 0 });
});

it("have a line again when one comes back", async () => {
  const { lane, from } = await startLane(0);
  const going = new AbortController();
  const askers = new Askers(from(OTHER, going));
  const turn = askers.enter(lane, () => undefined).catch(() => "refused");
  askers.add(from(THIRD));
  going.abort(new Error("gone"));
  askers.add(from(OTHER));
  await nextTurn();
  expect(lane.counts.waiting).toBe(2);
  askers.add(from(OTHER));
  expect(lane.counts.waiting).toBe(2);
  expect(await Promise.race([turn, nextTurn("waiting")])).toBe("waiting");
});

it("have a line of who waits for nothing else, whatever the first of them wait for", async () => {
  const lane = new LargeLane();
  const { signal } = new AbortController();
  const strangers = Array.from({ length: 9 }, (_, index) => `10.0.0.${index}`);
  const leaving = [await lane.enter(signal, MANY), await lane.enter(signal, MANY)];
  const others: string[] = [];
  for (const client of strangers) {
    for (let count = 0; count < 10; count++) {
      const taken = lane.enter(signal, client);
      void taken.then((giveBack) => [others.push(client), giveBack()]);
    }
  }
  const [first, ...more] = strangers.map((client) => ({ client, signal }));
  if (first === undefined) throw new Error("nobody asks");
  const askers = new Askers(first);
  const turn = askers.enterAnyway(lane);
  for (const one of more) askers.add(one);
  expect(lane.counts.waiting).toBe(98);
  askers.add({ client: OTHER, signal });
  expect(lane.counts.waiting).toBe(98);
  // Nobody's line is shorter than that one's: the next of those who ask waits behind.
  askers.add({ client: THIRD, signal });
  expect(lane.counts.waiting).toBe(98);
  askers.add({ client: strangers[0] ?? "", signal });
  expect(lane.counts.waiting).toBe(98);
  leaving.pop()?.();
  const giveBack = await turn;
  // One of each client's that has come before, and no more.
  expect(others).toEqual(strangers);
  await nextTurn();
  giveBack();
});

it("have the lines of those again that had to leave them, where nobody else is left", async () => {
  const { lane, from, leave } = await startLane(0);
  const { signal } = new AbortController();
  const strangers = Array.from({ length: 8 }, (_, index) => `10.0.0.${index}`);
  for (const client of strangers) void lane.enter(signal, client).then((giveBack) => giveBack());
  const [going, endings] = [new AbortController(), strangers.map(() => new AbortController())];
  const [, second] = endings;
  const [first, ...more] = strangers.map((client, index) => from(client, endings[index]));
  if (first === undefined) throw new Error("nobody asks");
  const askers = new Askers(first);
  const turn = askers.enter(lane, () => undefined);
  for (const one of more) askers.add(one);
  expect(lane.counts.waiting).toBe(16);
  askers.add(from(OTHER, going));
  askers.add(from(THIRD, going));
  expect(lane.counts.waiting).toBe(16);
  await nextTurn();
  // Of the two that have left theirs, one goes for good.
  second?.abort(new Error("gone"));
  for (const ending of [going, ...endings.slice(2)]) ending.abort(new Error("gone"));
  await nextTurn();
  expect(lane.counts.waiting).toBe(9);
  leave();
  (await turn)();
});
