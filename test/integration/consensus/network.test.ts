/** Validators in one process, on real stores, over a network that the test is. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { hashConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { until } from "../../helpers/until.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";

let close: () => Promise<void> = async () => undefined;

afterEach(async () => {
  await close();
  close = async () => undefined;
});

const faucet = new Wallet(`0x${"11".repeat(32)}`);

function network(count: number, followers = 0): ValidatorNetwork {
  const { genesis, seeds } = validatorGenesis(count, { faucet: faucet.address });
  const all = [...seeds, ...Array.from({ length: followers }, () => undefined)];
  const opened = new ValidatorNetwork(genesis, all);
  close = () => opened.close();
  return opened;
}

describe("one validator", () => {
  it("decides blocks alone, and goes on after a restart", async () => {
    const { genesis, seeds } = validatorGenesis(1);
    const first = await ValidatorNode.open({ genesis, seed: seeds[0] });
    first.start(() => undefined);
    await until(() => first.height >= 5 || first.halts.length > 0, { timeoutMs: 20_000 });
    expect(first.halts).toEqual([]);
    await first.stop({ keep: true });
    const height = first.height;
    const second = await ValidatorNode.open({ genesis, seed: seeds[0], home: first.home });
    close = () => second.stop();
    expect(second.height).toBe(height);
    second.start(() => undefined);
    await until(() => second.height >= height + 3, { timeoutMs: 20_000 });
  });
});

describe("four validators", () => {
  it("make 20 blocks with transactions, one of them crashing and coming back", async () => {
    const net = network(4, 1);
    for (const index of [0, 1, 2, 3, 4]) await net.start(index);
    await net.reach(3);
    const raw = await faucet.signTransaction({
      type: 0,
      chainId: net.genesis.evmChainId,
      nonce: 0,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      to: `0x${"77".repeat(20)}`,
      value: 5n,
    });
    // Only one node knows it: the others recover its sender from the proposal.
    const [hash] = (await net.nodes[1]?.pool.submit([parseHexBytes(raw)])) ?? [];
    expect(typeof hash).toBe("string");
    await net.reach(8);
    const home = await net.halt(2);
    const before = net.nodes[0]?.height ?? 0;
    await net.reach(before + 4);
    const back = await net.start(2, { home });
    await net.reach(20);
    expect(back.height).toBeGreaterThanOrEqual(20);
    const nodes = net.nodes.filter((node) => node !== undefined);
    const chains = nodes.map(({ consensus, view }) =>
      Array.from({ length: 20 }, (_, at) => {
        const decided = consensus.load(at + 1);
        if (decided === undefined) throw new Error(`no block ${at + 1}`);
        const { header } = decided.block;
        expect(header.appHash).toBe(view.block(at)?.block.hash);
        return hashConsensusHeader(header);
      }),
    );
    expect(new Set(chains.map((chain) => chain.join())).size).toBe(1);
    // All four propose in turn, who came back and who alone knew the transaction among them; a turn
    // that is lost, for this machine is busy, comes again.
    const proposers = () => {
      const { consensus, height = 0 } = nodes[0] ?? {};
      const made = Array.from({ length: height }, (_, at) => consensus?.load(at + 1)?.block.header);
      return new Set(made.map((header) => header?.proposerAddress));
    };
    const places = () => nodes.map(({ view }) => view.locate(hash as never)?.height);
    await until(() => proposers().size === 4 && !places().includes(undefined), {
      timeoutMs: 60_000,
      what: "each validator's turn, and the transaction",
    });
    expect(new Set(places()).size).toBe(1);
  });
});
