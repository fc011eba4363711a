/** Transactions of a proposal that no gas limit pays for: nothing of them is decoded. */
import { expect, it } from "@jest/globals";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, signLegacy } from "../../../chain/transaction.js";
import { createProposedTransactions } from "../../../node/mempool/admission/proposed-transactions.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const key = Buffer.alloc(32, 7);
const genesis = testGenesis(testAddress(1));
const { maxTransactionGas } = genesis.params;
const proposed = createProposedTransactions({
  chainId: genesis.evmChainId,
  cosmosChainId: genesis.cosmosChainId,
  params: genesis.params,
  pool: { getBySdkHash: () => undefined },
  recovery: { recover: unasked, verify: unasked },
});

function unasked(): never {
  throw new Error("nobody's sender is asked for");
}

/** With so many zero bytes, which are the cheapest. */
function withCalldata(length: number): Uint8Array {
  const raw = signLegacy(
    {
      chainId: genesis.evmChainId,
      nonce: 0n,
      gasPriceAtoken: 1n,
      gasLimit: maxTransactionGas,
      to: testAddress(2),
      valueAtoken: 0n,
      data: new Uint8Array(length),
    },
    key,
  );
  return encodeSdkTransaction(decodeTransaction(raw), testAddress(1));
}

it.each([
  ["a Cosmos transaction", Buffer.alloc(Number(maxTransactionGas / 10n) + 1, 10)],
  ["an EVM transaction", withCalldata(Number(maxTransactionGas / 4n) + 4_096)],
])("%s is refused unread", async (_what, bytes) => {
  await expect(proposed.read([bytes])).rejects.toThrow("longer than any gas limit pays for");
});

it("one that its gas limit can pay for is read, and judged as ever", async () => {
  const longest = Number((maxTransactionGas - 21_000n) / 4n);
  await expect(proposed.read([withCalldata(longest)])).rejects.toThrow("nobody's sender");
  await expect(proposed.read([withCalldata(longest + 1)])).rejects.toThrow("INTRINSIC_GAS");
  const unreadable = Buffer.alloc(1_000, 10);
  await expect(proposed.read([unreadable])).rejects.toThrow("a transaction cannot be read");
});
