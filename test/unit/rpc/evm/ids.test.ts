/**
 * Ids of filters and subscriptions are quantities: clients that keep them as numbers ask with the
 * same text again.
 */
import { expect, it } from "@jest/globals";
import type { Subscriber } from "../../../../node/rpc/evm/method.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { createTestNode } from "./fixture.js";

/** One id in sixteen would begin with a zero digit. */
const MANY = 250;

/** As alloy and web3j write an id that they have read. */
const writtenAgain = (id: string) => `0x${BigInt(id).toString(16)}`;

it("finds filters by ids that were kept as numbers", async () => {
  const { call } = createTestNode();
  for (const method of ["eth_newFilter", "eth_newBlockFilter", "eth_newPendingTransactionFilter"]) {
    const params = method === "eth_newFilter" ? [{}] : [];
    for (let count = 0; count < MANY; count++) {
      const id = await call<string>(method, ...params);
      expect(await call("eth_getFilterChanges", writtenAgain(id))).toEqual([]);
      expect(await call("eth_uninstallFilter", writtenAgain(id))).toBe(true);
    }
  }
});

it("ends subscriptions by ids that were kept as numbers", async () => {
  const { api } = createTestNode();
  const subscriber: Subscriber = {
    isBehind: false,
    notify: () => undefined,
    tooSlow: () => undefined,
    failed: () => undefined,
    drained: async () => undefined,
    onClose: () => undefined,
  };
  const ask = async (method: string, param: string): Promise<unknown> => {
    const context = new RequestContext(5_000, subscriber);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [param] });
    const reply = await api.dispatcher.handle(Buffer.from(body), context);
    context.finish();
    return (JSON.parse(reply?.map(String).join("") ?? "null") as { result?: unknown }).result;
  };
  for (let count = 0; count < MANY; count++) {
    const id = String(await ask("eth_subscribe", "newHeads"));
    expect(await ask("eth_unsubscribe", writtenAgain(id))).toBe(true);
  }
});
