/** A node as the reconciliation of books and chain asks it (`ledger/books/reconcile.ts`). */
import type { Address } from "../chain/address.js";
import type { Hash32, Height } from "../chain/hex.js";
import type { EvmClient } from "./evm-client.js";

/** Blocks of logs in one question. */
const LOG_BLOCKS = 10_000;

/** A balance at the end of a block. */
interface BalanceQuery {
  readonly address: Address;
  readonly height: Height;
}

/** The node as the reconciliation's port. */
export function createReconcileChain(
  node: Pick<
    EvmClient,
    | "getBlockHeader"
    | "getBalances"
    | "getReceiptsUpTo"
    | "accountJournal"
    | "tokenBalances"
    | "transferLogs"
  >,
  signal: AbortSignal,
) {
  return {
    blockHash: async (height: Height) => (await node.getBlockHeader(height, { signal }))?.hash,
    balances: (queries: readonly BalanceQuery[]) =>
      node.getBalances(
        queries.map(({ address, height }) => ({ address, at: height })),
        { signal },
      ),
    tokenBalances: (token: Address, queries: readonly BalanceQuery[]) =>
      node.tokenBalances(
        queries.map(({ address: account, height: at }) => ({ token, account, at })),
        { signal },
      ),
    async minedCosts(hashes: readonly Hash32[], upToHeight: Height) {
      const receipts = await node.getReceiptsUpTo(upToHeight, hashes, { signal });
      return receipts.map((receipt) =>
        receipt === undefined
          ? undefined
          : {
              height: receipt.height,
              isSuccess: receipt.status === 1,
              feeAtoken: receipt.gasUsed * receipt.effectiveGasPriceAtoken,
              transfers: receipt.transfers,
            },
      );
    },
    async *movements(address: Address, upToHeight: Height) {
      let from: number | undefined = 0;
      while (from !== undefined && from <= upToHeight) {
        const range = { from, to: upToHeight };
        const page = await node.accountJournal(address, range, { signal });
        for (const entry of page.entries) {
          if (!entry.change.effective || entry.deltaAtoken === 0n) continue;
          const { height, deltaAtoken: deltaUnits } = entry;
          yield { height, deltaUnits, txHash: entry.transactionHash ?? entry.blockHash };
        }
        from = page.next;
      }
    },
    async *tokenMovements(
      contract: Address,
      account: Address,
      range: { readonly from: Height; readonly to: Height },
    ) {
      for (let from = range.from; from <= range.to; from += LOG_BLOCKS) {
        const to = Math.min(from + LOG_BLOCKS - 1, range.to);
        const wanted = { signal, contracts: [contract], account };
        for (const log of await node.transferLogs({ from, to }, wanted)) {
          const { height, txHash, value = 0n } = log;
          // A transfer to itself moved nothing.
          if (log.from === log.to || value === 0n) continue;
          yield { height, txHash, deltaUnits: log.to === account ? value : -value };
        }
      }
    },
  };
}
