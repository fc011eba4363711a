/** The hot wallet's own transactions, as the node's journals show them. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { WalletTransaction } from "../../ledger/withdrawals/operator-decisions.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { JournaledTransaction } from "../../rpc-client/journal-codec.js";
import { CliError } from "../errors.js";

/** Blocks whose journals one command reads; more needs a narrower question. */
const MAX_BLOCKS = 20_000;

/**
 * Transactions that the wallet signed in blocks `from` to `to`, in order. Every one pays a fee, so
 * the account's journal names all their blocks.
 * @throws USAGE when there are too many blocks; the node's faults
 */
export async function readWalletTransactions(
  node: Pick<EvmClient, "accountJournal" | "blockJournal">,
  wallet: Address,
  range: { readonly from: Height; readonly to: Height; readonly signal: AbortSignal },
): Promise<WalletTransaction[]> {
  const { signal } = range;
  const blockHashes = new Set<Hash32>();
  let from: Height | undefined = range.from;
  while (from !== undefined) {
    const page = await node.accountJournal(wallet, { from, to: range.to }, { signal });
    for (const { change, blockHash } of page.entries) {
      if (change.reason === "FEE" && change.from === wallet) blockHashes.add(blockHash);
    }
    if (blockHashes.size > MAX_BLOCKS) {
      throw new CliError("USAGE", `the wallet has payments in more than ${MAX_BLOCKS} blocks.`);
    }
    from = page.next;
  }
  const found: WalletTransaction[] = [];
  for (const blockHash of blockHashes) {
    const block = await node.blockJournal(blockHash, { signal });
    for (const transaction of block?.transactions ?? []) {
      if (transaction.from !== wallet || block === undefined) continue;
      found.push(toWalletTransaction(transaction, block.height));
    }
  }
  return found;
}

function toWalletTransaction(tx: JournaledTransaction, height: Height): WalletTransaction {
  const value = tx.changes.find(({ tracePath, effective }) => tracePath === "" && effective);
  return {
    hash: tx.hash,
    height,
    nonce: tx.nonce,
    to: tx.to,
    valueAtoken: value?.amountAtoken ?? 0n,
    gasUsed: tx.gasUsed,
    gasPriceAtoken: tx.gasPriceAtoken,
  };
}
