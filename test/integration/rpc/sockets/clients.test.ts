/** Unchanged clients over WebSocket: that they see blocks, and come again. */
import { describe, expect, it } from "@jest/globals";
import { EventEmitter, once } from "node:events";
import { WebSocketProvider } from "ethers";
import { createPublicClient, webSocket } from "viem";
import { Web3, WebSocketProvider as Web3Provider } from "web3";
import { cleanups, startNode } from "./socket-node.js";

describe("unchanged clients over WebSocket", () => {
  it("ethers and viem see new blocks", async () => {
    const { url, chain } = await startNode();
    const provider = new WebSocketProvider(url);
    cleanups.push(() => provider.destroy());
    const viem = createPublicClient({ transport: webSocket(url) });
    await provider.getBlockNumber();
    const heard = Promise.all([
      new Promise((resolve) => {
        void provider.once("block", resolve);
      }),
      new Promise((resolve) => {
        const unwatch = viem.watchBlockNumber({
          onBlockNumber(height) {
            unwatch();
            resolve(height);
          },
        });
      }),
    ]);
    const blocks = setInterval(() => chain.add([]), 20);
    cleanups.push(() => clearInterval(blocks));
    const [byEthers, byViem] = await heard;
    // ethers ends its subscription in the background; an answer to a later request proves it done.
    await new Promise(setImmediate);
    await provider.send("eth_chainId", []);
    (await viem.transport.getRpcClient()).close();
    expect([Number(byEthers) > 0, Number(byViem) > 0]).toEqual([true, true]);
  });

  it("web3 connects again when the node is restarted in order", async () => {
    const { url, server } = await startNode();
    const options = { autoReconnect: true, delay: 20, maxAttempts: 1_000 };
    const provider = new Web3Provider(url, {}, options);
    const web3 = new Web3(provider);
    expect(await web3.eth.getBlockNumber()).toBe(0n);
    const connected = new Promise((resolve, reject) => {
      provider.on("connect", resolve);
      provider.on("disconnect", reject);
    });
    await server.stop();
    const { chain } = await startNode({}, server.address.port);
    // Before the node stops once more, for which it would come again, too.
    cleanups.push(async () => {
      const { SocketConnection: socket } = provider;
      if (!(socket instanceof EventEmitter)) throw new Error("web3 has no socket");
      const closed = once(socket, "close");
      provider.disconnect();
      await closed;
    });
    await connected;
    chain.add([]);
    expect(await web3.eth.getBlockNumber()).toBe(1n);
  });
});
