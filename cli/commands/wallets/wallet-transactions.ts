/** The hot wallet's own transactions, as the node's journals show them. */
import type { Address } from "../../../chain/address.js";
import { decodeTransfer, ERC20_TOPICS } from "../../../chain/evm/erc20.js";
import { atMostWord, type Hash32, type Height } from "../../../chain/hex.js";
import type { MinedPayment } from "../../../ledger/recovery/recovery-plan.js";
import { type LoggedTransfer, termsOf } from "../../../ledger/requests/payment-terms.js";
import {
  coinMovements,
  type ForeignPayment,
  mayHavePaid,
  tokenMovements,
} from "../../../ledger/requests/possible-payments.js";
import type { EvmClient } from "../../../rpc-client/evm-client.js";
import type { JournaledBlock, JournaledTransaction } from "../../../rpc-client/journal-codec.js";
import { transferOf } from "../../../rpc-client/tokens/transfer-logs.js";
import { CliError } from "../../errors.js";

/** Blocks whose journals one command reads; more needs a narrower question. */
const MAX_BLOCKS = 20_000;

/** The same for a recovery, which may have lost all of a wallet's history and has no other way. */
export const MAX_RECOVERED_BLOCKS = 2_000_000;

/**
 * Transactions that the wallet signed in blocks `from` to `to`, in order. Every one pays a fee, or
 * at least coins, so the account's journal names all their blocks: a block may hold what pays no fee.
 * @throws USAGE when there are too many blocks; NODE_UNFIT where one of them is not shown; the node's faults
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
      if (change.from === wallet) blockHashes.add(blockHash);
    }
    if (blockHashes.size > maxBlocks) {
      throw new CliError("USAGE", `the wallet has payments in more than ${maxBlocks} blocks.`);
    }
    from = page.next;
  }
  const found: MinedPayment[] = [];
  for (const blockHash of blockHashes) {
    const block = await node.blockJournal(blockHash, { signal });
    if (block === undefined) throw blockMissing(blockHash);
    for (const transaction of block.transactions) {
      if (transaction.from === wallet) found.push(toMinedPayment(transaction, block));
    }
  }
  return found;
}

/** Of nodes behind a balancer one may have named a block that another one does not have yet. */
function blockMissing(blockHash: Hash32): CliError {
  return new CliError(
    "NODE_UNFIT",
    `The node names the block ${blockHash} of the wallet's transactions and does not show it: ask a ` +
      "node with the whole chain, then type this again.",
    { retriable: true },
  );
}

/**
 * What a transaction of a block may have paid, whoever signed it.
 * @returns undefined where the block has no such transaction
 * @throws the node's faults
 */
export async function readPayment(
  node: Pick<EvmClient, "getBlockHeader" | "blockJournal">,
  { hash, height }: { readonly hash: Hash32; readonly height: Height },
  options: { readonly signal: AbortSignal },
): Promise<ForeignPayment | undefined> {
  const header = await node.getBlockHeader(height, options);
  const block = header && (await node.blockJournal(header.hash, options));
  const transaction = block?.transactions.find((one) => one.hash === hash);
  return transaction && { hash, paid: paidBy(transaction) };
}

function toMinedPayment(
  tx: JournaledTransaction,
  { hash: blockHash, height }: JournaledBlock,
): MinedPayment {
  const { isSuccess, ...said } = saidBy(tx);
  return {
    hash: tx.hash,
    height,
    blockHash,
    nonce: tx.nonce,
    ...said,
    isCosmos: tx.cosmos !== undefined,
    isSuccess,
    paid: paidBy(tx),
    taken: takenFrom(tx.from, tx),
    gasUsed: tx.gasUsed,
    gasPriceAtoken: tx.gasPriceAtoken,
    feeAtoken: tx.cosmos?.feeAtoken ?? tx.gasUsed * tx.gasPriceAtoken,
  };
}

type Said = Pick<MinedPayment, "to" | "isSuccess" | "valueAtoken" | "transfer">;

/** What its own bytes say; Cosmos messages are known by what they sent. */
function saidBy(tx: JournaledTransaction): Said {
  const isSuccess = tx.status === 1;
  if (tx.cosmos !== undefined) {
    const sends = tx.changes.filter(
      (each) => each.reason === "CALL" && each.from === tx.from && each.effective,
    );
    const valueAtoken = sends.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
    const to = sends.length === 1 ? sends[0]?.to : undefined;
    return { to, isSuccess, valueAtoken, transfer: undefined };
  }
  const value = tx.changes.find(({ tracePath, effective }) => tracePath === "" && effective);
  const valueAtoken = value?.amountAtoken ?? 0n;
  const transfer = valueAtoken === 0n && tx.to !== undefined ? decodeTransfer(tx.input) : undefined;
  return { to: tx.to, isSuccess, valueAtoken, transfer };
}

function paidBy(tx: JournaledTransaction): MinedPayment["paid"] {
  const said = saidBy(tx);
  const movements = [...coinMovements(tx.changes), ...tokenMovements(transfersOf(tx))];
  return mayHavePaid(movements, said.isSuccess ? termsOf(said) : undefined);
}

/**
 * Sums of what left the wallet, also what came back in the same transaction: that is booked by itself. A
 * token's are what its contract says.
 */
function takenFrom(wallet: Address, tx: JournaledTransaction): MinedPayment["taken"] {
  const taken = new Map<Address | undefined, bigint>();
  const add = (contract: Address | undefined, amountUnits: bigint) => {
    if (amountUnits > 0n) taken.set(contract, (taken.get(contract) ?? 0n) + amountUnits);
  };
  for (const { reason, from, to, amountAtoken, effective } of tx.changes) {
    if (effective && reason !== "FEE" && from === wallet && to !== wallet) {
      add(undefined, amountAtoken);
    }
  }
  for (const { contract, from, to, units } of transfersOf(tx)) {
    if (from === wallet && to !== wallet) add(contract, units);
  }
  return [...taken].map(([contract, units]) => ({ contract, amountUnits: atMostWord(units) }));
}

/** Transfers of ERC-20 tokens, of any contract. */
function transfersOf({ logs }: JournaledTransaction): readonly LoggedTransfer[] {
  return logs.flatMap(({ address: contract, topics, data }) => {
    const signature: string | undefined = topics[0];
    if (signature !== ERC20_TOPICS.transfer) return [];
    const { standard, from, to, value } = transferOf(topics, data);
    return standard === "erc20" && value !== undefined
      ? [{ contract, from, to, units: value }]
      : [];
  });
}
