/** The hot wallet's own transactions, as the node's journals show them. */
import type { Address } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { decodeTransfer } from "../../../chain/erc20.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { MinedPayment } from "../../../ledger/recovery/recovery-plan.js";
import type { EvmClient } from "../../../rpc-client/evm-client.js";
import type { JournaledBlock, JournaledTransaction } from "../../../rpc-client/journal-codec.js";
import { CliError } from "../../errors.js";

/** Blocks whose journals one command reads; more needs a narrower question. */
const MAX_BLOCKS = 20_000;

/** The same for a recovery, which may have lost all of a wallet's history and has no other way. */
export const MAX_RECOVERED_BLOCKS = 2_000_000;

/**
 * Transactions that the wallet signed in blocks `from` to `to`, in order. Every one pays a fee, so
 * the account's journal names all their blocks.
 * @throws USAGE when there are too many blocks; the node's faults
 */
export async function readWalletTransactions(
  node: Pick<EvmClient, "accountJournal" | "blockJournal">,
  wallet: Address,
  range: {
    readonly from: Height;
    readonly to: Height;
    readonly signal: AbortSignal;
    readonly maxBlocks?: number;
  },
): Promise<MinedPayment[]> {
  const { signal, maxBlocks = MAX_BLOCKS } = range;
  const blockHashes = new Set<Hash32>();
  let from: Height | undefined = range.from;
  while (from !== undefined) {
    const page = await node.accountJournal(wallet, { from, to: range.to }, { signal });
    for (const { change, blockHash } of page.entries) {
      if (change.reason === "FEE" && change.from === wallet) blockHashes.add(blockHash);
    }
    if (blockHashes.size > maxBlocks) {
      throw new CliError("USAGE", `the wallet has payments in more than ${maxBlocks} blocks.`);
    }
    from = page.next;
  }
  const found: MinedPayment[] = [];
  for (const blockHash of blockHashes) {
    const block = await node.blockJournal(blockHash, { signal });
    for (const transaction of block?.transactions ?? []) {
      if (transaction.from !== wallet || block === undefined) continue;
      found.push(toMinedPayment(transaction, block));
    }
  }
  return found;
}

function toMinedPayment(
  tx: JournaledTransaction,
  { hash: blockHash, height }: JournaledBlock,
): MinedPayment {
  const value =
    tx.cosmos === undefined
      ? tx.changes.find(({ tracePath, effective }) => tracePath === "" && effective)
      : onlySend(tx);
  const valueAtoken = value?.amountAtoken ?? 0n;
  return {
    hash: tx.hash,
    height,
    blockHash,
    nonce: tx.nonce,
    to: tx.cosmos === undefined ? tx.to : value?.to,
    isCosmos: tx.cosmos !== undefined,
    isSuccess: tx.status === 1,
    valueAtoken,
    transfer: valueAtoken === 0n && tx.to !== undefined ? decodeTransfer(tx.input) : undefined,
    gasUsed: tx.gasUsed,
    gasPriceAtoken: tx.gasPriceAtoken,
    feeAtoken: tx.cosmos?.feeAtoken ?? tx.gasUsed * tx.gasPriceAtoken,
  };
}

/** What a Cosmos transaction sent, which names no recipient of its own; undefined of none, or of several. */
function onlySend({ from, changes }: JournaledTransaction): BalanceChange | undefined {
  const sends = changes.filter(
    (each) => each.reason === "CALL" && each.from === from && each.effective,
  );
  return sends.length === 1 ? sends[0] : undefined;
}
