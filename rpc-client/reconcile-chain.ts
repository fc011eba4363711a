/** A node as the reconciliation of books and chain asks it (`ledger/books/reconcile.ts`). */
import type { Address } from "../chain/address.js";
import type { Hash32, Height } from "../chain/hex.js";
import type { EvmClient } from "./evm-client.js";

/** The node as the reconciliation's port. */
export function createReconcileChain(
  node: Pick<EvmClient, "getBalances" | "getTransactionReceipts" | "accountJournal">,
  signal: AbortSignal,
) {
  return {
    balances: (queries: readonly { readonly address: Address; readonly height: Height }[]) =>
      node.getBalances(
        queries.map(({ address, height }) => ({ address, at: height })),
        { signal },
      ),
    async minedCosts(hashes: readonly Hash32[]) {
      const receipts = await node.getTransactionReceipts(hashes, { signal });
      return receipts.map((receipt) =>
        receipt === undefined
          ? undefined
          : {
              height: receipt.height,
              isSuccess: receipt.status === 1,
              feeAtoken: receipt.gasUsed * receipt.effectiveGasPriceAtoken,
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
          const { height, deltaAtoken } = entry;
          yield { height, deltaAtoken, txHash: entry.transactionHash ?? entry.blockHash };
        }
        from = page.next;
      }
    },
  };
}
