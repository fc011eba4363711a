/** A transaction is recovered once on each node: in the pool, or when a proposal brings it. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { type Hash32, parseHexBytes } from "../../../chain/hex.js";
import type { SignedTransaction } from "../../../chain/transaction.js";
import {
  InlineRecovery,
  type SenderRecovery,
} from "../../../node/mempool/recovery/sender-recovery.js";
import type { SignatureCheck } from "../../../chain/cosmos/ante.js";
import { until } from "../../helpers/until.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import { PATIENT_TIMEOUTS, validatorGenesis } from "../../helpers/chains/validator-node.js";

const faucet = new Wallet(`0x${"11".repeat(32)}`);

let close: () => Promise<void> = async () => undefined;

afterEach(() => close());

/** Recovers, and counts what proposals made it do. */
class CountedRecovery implements SenderRecovery {
  count = 0;
  private readonly inline = new InlineRecovery();

  verify(checks: readonly SignatureCheck[]) {
    this.count += checks.length;
    return this.inline.verify(checks);
  }

  recover(transactions: readonly SignedTransaction[]) {
    this.count += transactions.length;
    return this.inline.recover(transactions);
  }
}

describe("a proposal", () => {
  it("costs a recovery only where the pool does not have the transaction", async () => {
    const { genesis, seeds } = validatorGenesis(4, { faucet: faucet.address });
    const net = new ValidatorNetwork(genesis, seeds);
    close = () => net.close();
    const recovery = new CountedRecovery();
    for (const index of seeds.keys()) {
      await net.start(index, { recovery, timeouts: PATIENT_TIMEOUTS });
    }
    await net.reach(2);
    const raws = await Promise.all([0, 1, 2, 3].map((nonce) => signed(genesis.evmChainId, nonce)));
    const [last, ...shared] = raws.toReversed();
    if (last === undefined) throw new Error("nothing is signed");
    // Nobody hears of a block with them before everybody has them.
    net.passes = () => false;
    for (const [index, node] of net.nodes.entries()) {
      const answers = await node?.pool.submit(shared.toReversed(), index === 0 ? "client" : "peer");
      expect(answers?.every((answer) => typeof answer === "string")).toBe(true);
    }
    net.passes = () => true;
    await mined(net, shared.length);
    expect(recovery.count).toBe(0);
    // Only one node knows this one; the three others meet it in a proposal.
    const [hash] = (await net.nodes[2]?.pool.submit([last])) ?? [];
    await mined(net, raws.length);
    expect(recovery.count).toBe(3);
    const places = net.nodes.map((node) => {
      const height = node?.view.locate(hash as Hash32)?.height;
      return height === undefined ? "nowhere" : node?.view.blockHash(height);
    });
    expect(places).not.toContain("nowhere");
    expect(new Set(places).size).toBe(1);
  });
});

function signed(chainId: bigint, nonce: number): Promise<Uint8Array> {
  const to = `0x${"77".repeat(20)}`;
  const fields = { type: 0, chainId, nonce, gasPrice: 25_000_000n, gasLimit: 21_000n, to };
  return faucet.signTransaction({ ...fields, value: 1n }).then(parseHexBytes);
}

/** Resolves when so many of the faucet's transactions are in blocks of every node. */
function mined(net: ValidatorNetwork, count: number): Promise<void> {
  const address = faucet.address.toLowerCase() as never;
  return until(
    () => net.nodes.every((node) => node?.stores.state.account(address)?.nonce === BigInt(count)),
    { timeoutMs: 30_000, what: `${count} transactions are mined` },
  );
}
