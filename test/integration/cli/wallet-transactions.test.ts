/** A wallet's own transactions, as the commands read them of a node. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { readWalletTransactions } from "../../../cli/commands/wallets/wallet-transactions.js";
import { createEvmClient, type EvmClient } from "../../../rpc-client/evm-client.js";
import { createPatientClient } from "../../helpers/exchange/patient-node.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";

const signer = new Wallet(`0x${"11".repeat(32)}`);
const wallet = parseAddress(signer.address.toLowerCase());
const { signal } = new AbortController();

let chain: ServedChain;
let node: EvmClient;

beforeEach(async () => {
  chain = await ServedChain.open(testGenesis(wallet));
  node = createEvmClient(createPatientClient(chain.url));
});
afterEach(() => chain.close());

/** A block with one payment of the wallet. */
async function pay(nonce: number, fields: { gasPrice: bigint; value: bigint }): Promise<void> {
  const to = `0x${"22".repeat(20)}`;
  const rest = { type: 0, chainId: 6940, gasLimit: 21_000n, to };
  await chain.mine([await signer.signTransaction({ ...rest, nonce, ...fields })]);
}

it("are not read past a block that the node names and does not show", async () => {
  await pay(0, { gasPrice: 25_000_000n, value: 5n });
  const late: EvmClient = { ...node, blockJournal: async () => undefined };
  const range = { from: 0, to: 1, signal };
  await expect(readWalletTransactions(late, wallet, range)).rejects.toMatchObject({
    code: "NODE_UNFIT",
  });
});
