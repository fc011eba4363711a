/** Which contracts tell Deposits and Withdrawals by no Transfer, and from which block on that is known. */
import { type Address, addressToBytes, bytesToAddress } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { IndexSchema } from "./schema.js";

/** Those of some contracts of which it is known, with the block of the first log that said so. */
export async function readUnaccompanied(
  sql: Sql,
  schema: IndexSchema,
  contracts: ReadonlySet<Address>,
): Promise<ReadonlyMap<Address, Height>> {
  if (contracts.size === 0) return new Map();
  const rows = await sql.query<{ address: Buffer; height: number }>(
    `SELECT address, height FROM ${schema}.wrapped_coin WHERE address = ANY($1::bytea[])`,
    [[...contracts].map((one) => Buffer.from(addressToBytes(one)))],
  );
  return new Map(rows.map(({ address, height }) => [bytesToAddress(address), height]));
}

/** Keeps contracts of which it was not known before. */
export async function storeUnaccompanied(
  sql: Sql,
  schema: IndexSchema,
  found: ReadonlyMap<Address, Height>,
): Promise<void> {
  if (found.size === 0) return;
  await sql.query(
    `INSERT INTO ${schema}.wrapped_coin (address, height)
     SELECT * FROM unnest($1::bytea[], $2::integer[]) ON CONFLICT (address) DO NOTHING`,
    [[...found.keys()].map((one) => Buffer.from(addressToBytes(one))), [...found.values()]],
  );
}
