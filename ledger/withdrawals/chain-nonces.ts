/**
 * Wallets of which more nonces are used than their ledger gave: by the chain, its pool, or what was shown;
 * and a node that shows too little of the chain to say so. Looked at before anything gets a nonce, and
 * before anything without one ends: what the ledger has lost may have paid it. The ledger asks no node: who
 * calls does.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { behindReason } from "../requests/freeze-causes.js";
import { freezeBehindChain } from "../requests/signing-freeze.js";
import { type HotWalletState, readHotWallet } from "../wallets/wallet-lease.js";
import { readOtherWallets } from "./wallet-overview.js";

/** A wallet's row, and what this process was shown of it before. */
export interface ShownWallet extends HotWalletState {
  /** The highest next nonce that was ever shown; absent where nobody keeps it. */
  readonly shownNonce?: bigint;
}

/** What a look asks of the ledger. */
export interface NonceLedger {
  readHotWallet(wallet: Address): Promise<ShownWallet | undefined>;
  /** See `readOtherWallets`. */
  readOtherWallets(wallet?: Address): Promise<Address[]>;
  /** See `freezeBehindChain`. */
  freezeBehindChain(behind: Parameters<typeof freezeBehindChain>[1]): Promise<boolean>;
}

/** The ledger for who was shown nothing before. */
export function createNonceLedger(database: SqlDatabase): NonceLedger {
  return {
    readHotWallet: (wallet) => readHotWallet(database, wallet),
    readOtherWallets: (wallet) => readOtherWallets(database, wallet),
    freezeBehindChain: (behind) => freezeBehindChain(database, behind),
  };
}

/** A wallet's next nonces on the chain, as of one node. */
export interface ChainNonces {
  readonly height: Height;
  /** Behind that block. */
  readonly nonce: bigint;
  /** Behind everything executable in the pool, too; read after the rest. */
  readonly pendingNonce: bigint;
}

/** What a look takes. */
export interface NonceLook {
  readonly ledger: NonceLedger;
  readonly node: {
    view(wallet: Address, options: { readonly signal: AbortSignal }): Promise<ChainNonces>;
  };
  readonly log: Pick<Logger, "error">;
}

/**
 * Freezes a wallet whose ledger has given fewer nonces than the chain has used, the pool holds, or this
 * process was shown: the key was used elsewhere, or the ledger is an older one.
 * @param row read behind the chain
 */
export async function freezeIfBehind(
  {
    ledger,
    log,
  }: { readonly ledger: Pick<NonceLedger, "freezeBehindChain">; readonly log: NonceLook["log"] },
  wallet: Address,
  view: Pick<ChainNonces, "nonce" | "pendingNonce">,
  row: Pick<ShownWallet, "nextNonce" | "shownNonce" | "released">,
): Promise<void> {
  const seen = [view.nonce, view.pendingNonce, row.shownNonce ?? 0n].reduce((left, right) =>
    left > right ? left : right,
  );
  if (seen <= row.nextNonce) return;
  const { nextNonce: known, released } = row;
  if (await ledger.freezeBehindChain({ wallet, seen, known, released })) {
    log.error({ wallet, reason: behindReason(seen, known) }, "signing is frozen");
  }
}

/**
 * Looks at all wallets that may have paid, of which no lane of this process may have had a round yet. The
 * rows are read behind the chain. Not by a node that shows less than is known: what a wallet has paid may be
 * in the blocks that it lacks.
 * @param asked.besides a wallet that was looked at already
 * @param asked.knownHeight a height that the chain has had
 * @throws NODE_BEHIND
 */
export async function checkNonces(
  look: NonceLook,
  {
    besides,
    knownHeight,
    signal,
  }: {
    readonly besides?: Address;
    readonly knownHeight: Height;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const wallets = await look.ledger.readOtherWallets(besides);
  const check = async (wallet: Address) => {
    const view = await look.node.view(wallet, { signal });
    const row = await look.ledger.readHotWallet(wallet);
    refuseOlderHead(view, Math.max(knownHeight, row?.settledHeight ?? 0));
    if (row !== undefined) await freezeIfBehind(look, wallet, view, row);
  };
  await Promise.all(wallets.map(check));
}

/**
 * A node that shows an older head than is known may lack what was paid since.
 * @param knownHeight a height that the chain has had
 * @throws NODE_BEHIND
 */
export function refuseOlderHead(
  { height }: Pick<ChainNonces, "height">,
  knownHeight: Height,
): void {
  if (height >= knownHeight) return;
  throw new LedgerError("NODE_BEHIND", `the node shows height ${height} after ${knownHeight}`, {
    retriable: true,
    details: { height, knownHeight },
  });
}
