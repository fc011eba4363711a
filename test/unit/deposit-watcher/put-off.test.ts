/** What a round of the past puts off, and what it says of it. */
import { expect, it } from "@jest/globals";
import { PutOff } from "../../../deposit-watcher/put-off.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";

const untold = (text: string) => new RpcError(text, { rpcCode: 4444, method: "eth_getBalance" });

it("names the first that was begun, whichever was refused first", async () => {
  const putOff = new PutOff();
  const late = Promise.withResolvers<void>();
  const first = putOff.unlessUntold(() => late.promise);
  await putOff.unlessUntold(() => Promise.reject(untold("of the second")));
  late.reject(untold("of the first"));
  await first;
  await putOff.unlessUntold(() => Promise.reject(untold("of the third")));
  expect(putOff.count).toBe(3);
  expect(() => putOff.throwFirst()).toThrow("of the first");
});

it("puts off nothing where the node cannot be asked", async () => {
  const putOff = new PutOff();
  const away = new NodeFault("NODE_UNREACHABLE", "no connection", { retriable: true });
  await expect(putOff.unlessUntold(() => Promise.reject(away))).rejects.toBe(away);
  expect(putOff.count).toBe(0);
  expect(() => putOff.throwFirst()).not.toThrow();
});
