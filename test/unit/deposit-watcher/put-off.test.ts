/** What a round of the past puts off, and what it says of it. */
import { expect, it } from "@jest/globals";
import { answerOfFirst, isUntold, PutOff, PutOffMemory } from "../../../deposit-watcher/put-off.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";

const untold = (text: string) => new RpcError(text, { rpcCode: 4444, method: "eth_getBalance" });

it("names the first that was begun, whichever was refused first", async () => {
  const putOff = new PutOff(new PutOffMemory());
  const late = Promise.withResolvers<void>();
  const first = putOff.unlessUntold("first", () => late.promise);
  await putOff.unlessUntold("second", () => Promise.reject(untold("of the second")));
  late.reject(untold("of the first"));
  await first;
  await putOff.unlessUntold("third", () => Promise.reject(untold("of the third")));
  expect(putOff.count).toBe(3);
  expect(() => putOff.throwFirst()).toThrow("of the first");
});

it("puts off nothing where the node cannot be asked", async () => {
  const putOff = new PutOff(new PutOffMemory());
  const away = new NodeFault("NODE_UNREACHABLE", "no connection", { retriable: true });
  await expect(putOff.unlessUntold("any", () => Promise.reject(away))).rejects.toBe(away);
  expect(putOff.count).toBe(0);
  expect(() => putOff.throwFirst()).not.toThrow();
});

it("asks again after delays that double, says why all the while, and of nothing else's delay", async () => {
  const clock = { ms: 0, monotonicMs: () => clock.ms };
  const memory = new PutOffMemory(clock);
  const asked: number[] = [];
  let isTold = false;
  const round = async () => {
    memory.begin(0);
    const putOff = new PutOff(memory);
    await putOff.unlessUntold("old", async () => {
      asked.push(clock.ms);
      if (!isTold) throw untold("of the old");
    });
    return putOff;
  };
  for (; clock.ms < 20_000; clock.ms += 500) {
    const putOff = await round();
    expect(putOff.count).toBe(1);
    expect(() => putOff.throwFirst()).toThrow("of the old");
  }
  expect(asked).toEqual([0, 500, 1_500, 3_500, 7_500, 15_500]);
  let others = 0;
  await new PutOff(memory).unlessUntold("new", async () => void (others += 1));
  expect(others).toBe(1);
  // No longer than five minutes, however often it was refused.
  for (let refusal = 0; refusal < 10; refusal += 1) {
    clock.ms += 3_600_000;
    await round();
  }
  const count = asked.length;
  isTold = true;
  clock.ms += 299_000;
  await round();
  expect(asked).toHaveLength(count);
  clock.ms += 1_000;
  for (let again = 0; again < 2; again += 1) expect((await round()).count).toBe(0);
  expect(asked).toHaveLength(count + 2);
});

it("asks all again once one is told, and on a chain that came back shorter", async () => {
  const memory = new PutOffMemory({ monotonicMs: () => 0 });
  const putOff = new PutOff(memory);
  const refuse = () => Promise.reject(untold("of it"));
  for (const what of ["one", "other"]) await putOff.unlessUntold(what, refuse);
  expect(["one", "other"].map((what) => memory.isWaiting(what))).toEqual([true, true]);
  memory.done("other");
  expect(memory.isWaiting("one")).toBe(false);
  await putOff.unlessUntold("one", refuse);
  memory.begin(1);
  expect(memory.isWaiting("one")).toBe(false);
});

it("says which node has deleted what, and what to do", async () => {
  const refused = answerOfFirst(Promise.reject(untold("pruned")), "blocks up to 8");
  const error = await refused.catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    code: "NOT_READY",
    message:
      "the node has deleted blocks up to 8, which is booked when it shows that: name one that keeps " +
      "old blocks and states in node.json-rpc-url",
  });
  expect(isUntold(error)).toBe(true);
});
