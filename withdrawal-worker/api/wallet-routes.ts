/** `GET /v1/wallets`: every hot wallet with what it holds and who works for it. */
import { toChecksumAddress } from "../../chain/address.js";
import { readWalletOverview, type WalletLane } from "../../ledger/withdrawals/wallet-overview.js";
import type { KeyedRoute } from "../../runtime/http/http-route.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";

/** The route of `openapi/withdrawal.yaml`. */
export function createWalletRoutes(database: SqlDatabase): readonly KeyedRoute[] {
  return [
    {
      method: "get",
      path: "/v1/wallets",
      scope: "withdrawals:read",
      handler: async () => ({
        body: { wallets: (await readWalletOverview(database)).map(encodeWallet) },
      }),
    },
  ];
}

/** A wallet as the API and the command line's JSON show it. */
function encodeWallet(wallet: WalletLane) {
  const { seenAtoken, reservedAtoken, oldestSlot, freeze } = wallet;
  const freeAtoken =
    seenAtoken === undefined || seenAtoken < reservedAtoken ? 0n : seenAtoken - reservedAtoken;
  return {
    address: toChecksumAddress(wallet.address),
    label: wallet.label,
    status: wallet.status,
    since: wallet.since,
    reason: wallet.reason,
    balanceAtoken: seenAtoken?.toString() ?? null,
    balanceHeight: wallet.seenHeight ?? null,
    reservedAtoken: reservedAtoken.toString(),
    freeAtoken: freeAtoken.toString(),
    nextNonce: wallet.nextNonce === undefined ? null : Number(wallet.nextNonce),
    openSlots: wallet.openSlots,
    oldestSlot:
      oldestSlot === undefined ? null : { ...oldestSlot, nonce: Number(oldestSlot.nonce) },
    frozen: freeze.frozen,
    frozenReason: freeze.frozen ? freeze.reason : null,
    leaseHolder: wallet.leaseHolder ?? null,
    keyHeld: wallet.isKeyHeld,
  };
}
