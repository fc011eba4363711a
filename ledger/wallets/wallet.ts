/** The exchange's hot wallets: which there are, and which of them may take new payments. */
import type { Address } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { storedAddress, storedHeight, storedTime } from "../stored-values.js";

/**
 * What a wallet may do: `active` takes payments; `draining` takes none and finishes its own;
 * `retired` is signed for by nobody, but watched and reconciled for ever.
 */
const WALLET_STATUSES = ["active", "draining", "retired"] as const;

/** One of `WALLET_STATUSES`. */
export type WalletStatus = (typeof WALLET_STATUSES)[number];

/** Wallets that one ledger has at most, retired ones included: all are watched in every block. */
export const MAX_WALLETS = 1_000;

/** A wallet as registered. */
export interface HotWallet {
  readonly address: Address;
  readonly status: WalletStatus;
  /** Since when it has this status, RFC 3339 UTC. */
  readonly since: string;
  /** Why, in the words of who decided. */
  readonly reason: string;
  readonly operator: string;
  readonly label: string;
  /** First block whose operations are booked as they come. */
  readonly fromHeight: Height;
  /** False while the coins that lay there before are not booked. */
  readonly pastBooked: boolean;
}

interface WalletRow {
  readonly address: string;
  readonly status: string;
  readonly since: unknown;
  readonly reason: string;
  readonly operator: string;
  readonly label: string;
  readonly from_height: string;
  readonly past_booked: boolean;
}

/** All wallets, the first registered first. */
export async function listWallets(sql: Sql): Promise<HotWallet[]> {
  const rows = await sql.query<WalletRow>(
    // A chain that came back to a block before the registration is booked from there on.
    `SELECT address, status, since, reason, operator, label, past_booked,
            least(from_height, (SELECT min(r.to_height) + 1 FROM chain_rewind r
                                 WHERE r.at >= (SELECT min(c.at) FROM wallet_change c
                                                 WHERE c.address = w.address)))::text AS from_height
       FROM wallet w ORDER BY place`,
  );
  return rows.map((row) => ({
    address: storedAddress(row.address),
    status: storedWalletStatus(row.status),
    since: storedTime(row.since),
    reason: row.reason,
    operator: row.operator,
    label: row.label,
    fromHeight: storedHeight(row.from_height),
    pastBooked: row.past_booked,
  }));
}

/** Status of one wallet; undefined for an address that is none of ours. */
export async function walletStatus(sql: Sql, wallet: Address): Promise<WalletStatus | undefined> {
  const rows = await sql.query<{ status: string }>(`SELECT status FROM wallet WHERE address = $1`, [
    wallet,
  ]);
  return rows[0] === undefined ? undefined : storedWalletStatus(rows[0].status);
}

/**
 * The wallet of this address, in the words of an operator's command.
 * @throws UNKNOWN_WALLET
 */
export async function knownWallet(sql: Sql, address: Address): Promise<HotWallet> {
  const found = (await listWallets(sql)).find((wallet) => wallet.address === address);
  if (found !== undefined) return found;
  throw new LedgerError("UNKNOWN_WALLET", `${address} is none of this ledger's wallets.`);
}

/** Status column to a status; throws on a value that no version of the table allows. */
export function storedWalletStatus(text: string): WalletStatus {
  return present(
    WALLET_STATUSES.find((status) => status === text),
    "a status that wallets have",
  );
}
