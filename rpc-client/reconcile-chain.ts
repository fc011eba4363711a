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

interface HeightRange {
  readonly from: Height;
  readonly to: Height;
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
    async *movements(address: Address, { from: first, to }: HeightRange) {
      let from: number | undefined = first;
      while (from !== undefined && from <= to) {
        const page = await node.accountJournal(address, { from, to }, { signal });
        const movements = page.entries.flatMap((entry) => {
          const { change, height, deltaAtoken: deltaUnits } = entry;
          if (!change.effective || deltaUnits === 0n) return [];
          return [{ height, deltaUnits, txHash: entry.transactionHash ?? entry.blockHash }];
        });
        from = page.next;
        yield { upTo: from === undefined ? to : from - 1, movements };
      }
    },
    async *tokenMovements(contract: Address, account: Address, range: HeightRange) {
      for (let from = range.from; from <= range.to; from += LOG_BLOCKS) {
        const upTo = Math.min(from + LOG_BLOCKS - 1, range.to);
        const wanted = { signal, contracts: [contract], account };
        const logs = await node.transferLogs({ from, to: upTo }, wanted);
        const movements = logs.flatMap(({ from: payer, to, height, txHash, value = 0n }) => {
          // A transfer to itself moved nothing.
          if (payer === to || value === 0n) return [];
          return [{ height, txHash, deltaUnits: to === account ? value : -value }];
        });
        yield { upTo, movements };
      }
    },
  };
}
