/** Real validators over the real network: they decide, lose one, take it back, and a node joins. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseHexBytes } from "../../../chain/hex.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";
import { join, leave, leaveAll, place, reach } from "./members.js";

const faucet = new Wallet(`0x${"11".repeat(32)}`);

afterEach(leaveAll);

describe("validators over the network", () => {
  it("decide together, take one back, let a node join and mine what it hears", async () => {
    const { genesis, seeds } = validatorGenesis(4, {
      faucet: faucet.address,
      blockIntervalMs: 200,
    });
    const places = await Promise.all(seeds.map(() => place()));
    const persistentPeers = places.map(({ address }) => address);
    const members = await Promise.all(
      places.map((one, index) => join(genesis, one, { seed: seeds[index], persistentPeers })),
    );
    await reach(members, 5);
    const [first, second, third, fourth] = members;
    if (!first || !second || !third || !fourth) throw new Error("four members");

    const home = await leave(fourth, true);
    const others = [first, second, third];
    await reach(others, first.node.height + 10);
    const fourthPlace = places[3] ?? (await place());
    const back = await join(genesis, fourthPlace, { seed: seeds[3], home, persistentPeers });
    await reach([...others, back], first.node.height + 5);

    const follower = await join(genesis, await place(), { persistentPeers });
    await reach([follower], first.node.height);
    const raw = await faucet.signTransaction({
      type: 0,
      chainId: genesis.evmChainId,
      nonce: 0,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      to: `0x${"77".repeat(20)}`,
      value: 5n,
    });
    const [hash] = await follower.node.pool.submit([parseHexBytes(raw)]);
    const everybody = [...others, back, follower];
    await until(() => everybody.every(({ node }) => node.view.locate(hash as never)), {
      timeoutMs: 20_000,
      what: "the transaction is mined everywhere",
    });
    const height = Math.min(...everybody.map(({ node }) => node.height));
    const hashes = everybody.map(({ node }) => node.view.block(height)?.block.hash);
    expect(new Set(hashes).size).toBe(1);
    expect(hashes[0]).toBeDefined();
  });
});
