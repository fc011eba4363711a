/** What waits for a person: read from the tables, decided by nobody yet. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { UNASSIGNED } from "../journal/accounts.js";
import { TAKEN_BY_NAME } from "../deposits/suspense.js";
import { listOpenPayments, type RecoveredPayment } from "../requests/recovered-payments.js";
import { listRemined, type ReminedPayment } from "../blocks/remined-payments.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
} from "../stored-values.js";
import { type GivenGas, IS_GAS, listGivenGas } from "../treasury/moves.js";
import { STANDS } from "../requests/unexplained-outflows.js";
import { type Decision, listDecisions } from "./decision-log.js";

/** Everything that waits, each list oldest first and bounded. */
export interface OpenMatters {
  readonly payments: readonly RecoveredPayment[];
  /** Addresses without a customer when they were found, that hold something; the others can wait. */
  readonly addresses: readonly {
    readonly index: number;
    readonly address: Address;
    readonly asset: string;
    readonly suspenseUnits: bigint;
    /** A person has named its customer: what is left there is given by its deposits' ids. */
    readonly isAssigned: boolean;
  }[];
  readonly frozen: readonly { readonly id: string; readonly reason: string }[];
  readonly outflows: readonly {
    readonly hash: Hash32;
    readonly wallet: Address;
    readonly asset: string;
    readonly amountUnits: bigint;
    readonly feeAtoken: Atoken;
    readonly height: Height;
  }[];
  readonly remined: readonly ReminedPayment[];
  readonly givenGas: readonly GivenGas[];
  readonly proposals: readonly Decision[];
}

/** Reads at most `limit` rows of each kind. */
export async function readOpenMatters(sql: Sql, limit: number): Promise<OpenMatters> {
  const addresses = await sql.query<
    Record<"index" | "address" | "asset" | "amount", string> & { readonly is_assigned: boolean }
  >(
    `SELECT a.index::text, a.address, d.asset, sum(d.amount_units - ${TAKEN_BY_NAME})::text AS amount,
            EXISTS (SELECT 1 FROM address_assignment t WHERE t.address = a.address) AS is_assigned
       FROM deposit_address a JOIN deposit d ON d.address = a.address
      WHERE a.customer_id = $1 AND d.customer_id = $1 AND d.status = 'suspense'
        AND NOT ${IS_GAS} AND d.amount_units > ${TAKEN_BY_NAME}
      GROUP BY a.index, a.address, d.asset ORDER BY a.index, d.asset LIMIT $2`,
    [UNASSIGNED, limit],
  );
  const frozen = await sql.query<{ id: string; reason: string | null }>(
    `SELECT id, reason FROM withdrawal
      WHERE phase = 'open' AND status = 'frozen' ORDER BY position LIMIT $1`,
    [limit],
  );
  const outflows = await sql.query<{
    tx_hash: string;
    wallet: string;
    asset: string;
    amount_units: string;
    fee_atoken: string;
    height: string;
  }>(
    `SELECT tx_hash, wallet, asset, amount_units::text, fee_atoken::text, height::text
       FROM foreign_outflow f
      WHERE ${STANDS} AND explanation_of(f.wallet, f.tx_hash) IS NULL
      ORDER BY id LIMIT $1`,
    [limit],
  );
  return {
    payments: await listOpenPayments(sql, limit),
    addresses: addresses.map((row) => ({
      index: storedInteger(row.index),
      address: storedAddress(row.address),
      asset: row.asset,
      suspenseUnits: storedAtoken(row.amount),
      isAssigned: row.is_assigned,
    })),
    frozen: frozen.map(({ id, reason }) => ({ id, reason: reason ?? "" })),
    outflows: outflows.map((row) => ({
      hash: storedHash(row.tx_hash),
      wallet: storedAddress(row.wallet),
      asset: row.asset,
      amountUnits: storedAtoken(row.amount_units),
      feeAtoken: storedAtoken(row.fee_atoken),
      height: storedHeight(row.height),
    })),
    remined: await listRemined(sql, limit),
    givenGas: await listGivenGas(sql, limit),
    proposals: await listDecisions(sql, { status: "proposed", limit }),
  };
}
