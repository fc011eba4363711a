/** How often one client may search logs or subscribe, where the operator bounds it. */
import { describe, expect, it } from "@jest/globals";
import type { Subscriber } from "../../../../../node/rpc/evm/method.js";
import { RequestContext } from "../../../../../node/rpc/evm/request-context.js";
import { createTestNode } from "../fixture.js";

const STRANGER = "203.0.113.1";

/** A WebSocket that is told nothing. */
const SUBSCRIBER: Subscriber = {
  notify: () => undefined,
  tooSlow: () => undefined,
  failed: () => undefined,
  isBehind: false,
  drained: () => Promise.resolve(),
  onClose: () => undefined,
};

/** A node that lets a client search so often a second; two seconds' worth at once. */
function startNode(searchesPerSecond: number) {
  const node = createTestNode({ searchesPerSecond });
  const post = async (remoteAddress: string, body: unknown) => {
    const context = new RequestContext(60_000, SUBSCRIBER, { remoteAddress });
    const reply = await node.api.dispatcher.handle(Buffer.from(JSON.stringify(body)), context);
    context.finish();
    return JSON.parse(reply?.map(String).join("") ?? "null");
  };
  const ask = (remoteAddress: string, method: string, ...params: readonly unknown[]) =>
    post(remoteAddress, { jsonrpc: "2.0", id: 1, method, params });
  return { ...node, post, ask };
}

const TOO_OFTEN = { code: -32005, message: expect.stringMatching(/^limit exceeded/) };

describe("a client that searches", () => {
  it("more often than it may is told so, and may again a second later", async () => {
    const { ask, time } = startNode(1);
    const logs = () => ask(STRANGER, "eth_getLogs", {});
    expect([await logs(), await logs()]).toMatchObject([{ result: [] }, { result: [] }]);
    expect(await logs()).toMatchObject({ id: 1, error: TOO_OFTEN });
    expect(await ask("203.0.113.2", "eth_getLogs", {})).toMatchObject({ result: [] });
    time.nowMs += 1_000;
    expect([await logs(), await logs()]).toMatchObject([{ result: [] }, { error: TOO_OFTEN }]);
  });

  it("is counted once, by whichever method and in whichever batch", async () => {
    const { ask, post } = startNode(2);
    const filter = await ask(STRANGER, "eth_newFilter", {});
    expect(filter).toHaveProperty("result");
    const calls = [
      ["eth_getFilterLogs", filter.result],
      ["eth_subscribe", "newHeads"],
      ["eth_getLogs", {}],
      ["eth_subscribe", "newHeads"],
      ["eth_newFilter", {}],
      ["eth_getFilterLogs", filter.result],
      ["eth_blockNumber"],
      ["eth_newBlockFilter"],
      ["eth_getFilterChanges", filter.result],
    ] as const;
    const batch = calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params }));
    const answers: readonly { readonly error?: unknown }[] = await post(STRANGER, batch);
    const refused = answers.flatMap(({ error }, id) =>
      error === undefined ? [] : [{ id, error }],
    );
    expect(refused).toEqual([3, 4, 5].map((id) => ({ id, error: TOO_OFTEN })));
  });

  it("is not bounded on this machine, nor where no bound is set", async () => {
    const bounded = startNode(1);
    const free = startNode(0);
    for (let count = 0; count < 50; count++) {
      expect(await bounded.ask("127.0.0.1", "eth_getLogs", {})).toMatchObject({ result: [] });
      expect(await bounded.ask("::1", "eth_getLogs", {})).toMatchObject({ result: [] });
      expect(await free.ask(STRANGER, "eth_getLogs", {})).toMatchObject({ result: [] });
    }
  });
});
