/**
 * A wallet of which more nonces are used than its ledger gave: by the chain, its pool, or what was shown;
 * and a node that shows too little of the chain to say so.
 */
import type { Address } from "../../chain/address.js";
import { behindReason } from "../../ledger/requests/signing-freeze.js";
import { WorkerError } from "../errors.js";
import type { LaneContext } from "./lane-context.js";
import type { ShownWallet } from "./shown-nonces.js";
import type { WalletView } from "./wallet-node.js";

/**
 * Freezes a wallet whose ledger has given fewer nonces than the chain has used, the pool holds, or this
 * process was shown: the key was used elsewhere, or the ledger is an older one.
 * @param row read behind the chain
 */
export async function freezeIfBehind(
  { ledger, log }: Pick<LaneContext, "ledger" | "log">,
  wallet: Address,
  view: Pick<WalletView, "nonce" | "pendingNonce">,
  row: Pick<ShownWallet, "nextNonce" | "shownNonce" | "released">,
): Promise<void> {
  const seen = [view.nonce, view.pendingNonce, row.shownNonce ?? 0n].reduce((left, right) =>
    left > right ? left : right,
  );
  if (seen <= row.nextNonce) return;
  const reason = behindReason(seen, row.nextNonce);
  const { released } = row;
  if (await ledger.freezeBehindChain({ wallet, seen, reason, released })) {
    log.error({ wallet, reason }, "signing is frozen");
  }
}

/**
 * Looks at wallets of which no lane of this process may have had a round yet. The rows are read behind the
 * chain. Not by a node that shows less than is known: what a wallet has paid may be in the blocks that it
 * lacks.
 * @param knownHeight a height that the chain has had
 * @throws NODE_BEHIND
 */
export async function checkNonces(
  context: Pick<LaneContext, "ledger" | "node" | "log">,
  wallets: readonly Address[],
  { knownHeight, signal }: { readonly knownHeight: number; readonly signal: AbortSignal },
): Promise<void> {
  const check = async (wallet: Address) => {
    const view = await context.node.view(wallet, { signal });
    const row = await context.ledger.readHotWallet(wallet);
    refuseOlderHead(view, Math.max(knownHeight, row?.settledHeight ?? 0));
    if (row !== undefined) await freezeIfBehind(context, wallet, view, row);
  };
  await Promise.all(wallets.map(check));
}

/**
 * A node that shows an older head than is known may lack what was paid since.
 * @param knownHeight a height that the chain has had
 * @throws NODE_BEHIND
 */
export function refuseOlderHead({ height }: Pick<WalletView, "height">, knownHeight: number): void {
  if (height >= knownHeight) return;
  throw new WorkerError("NODE_BEHIND", `the node shows height ${height} after ${knownHeight}`, {
    retriable: true,
    details: { height, knownHeight },
  });
}
