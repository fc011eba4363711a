/**
 * Which deposits are one payment, mined again after a chain lost it. A transaction has its hash wherever it
 * is mined. What a block pays by itself, the end of an unbonding or a refund, has the block's hash and so
 * another one each time: there the same amount that comes to the same address is the same payment.
 */

/** SQL: whether a block paid `row` by itself; its transaction is called by the block's hash. */
function isOfBlock(row: string): string {
  return `${row}.tx_hash = ${row}.block_hash`;
}

/** SQL: a text that deposits of the same payment have in common. @param row of `deposit` */
export function paymentKey(row: string): string {
  return `CASE WHEN ${isOfBlock(row)} THEN 'block ' || ${row}.amount_units ELSE ${row}.tx_hash END
          || ' ' || ${row}.address || ' ' || ${row}.asset`;
}

/** SQL: whether two rows of `deposit` have the same key, by which neither is looked up. */
export function isSamePayment(one: string, other: string): string {
  return `(${paymentKey(one)} = ${paymentKey(other)})`;
}

/** SQL: the deposits of the payment of a row of `deposit`, itself among them, by their indexes. */
export function samePayments(row: string): string {
  return `
    SELECT t.* FROM deposit t
     WHERE NOT ${isOfBlock(row)} AND t.tx_hash = ${row}.tx_hash AND t.address = ${row}.address
       AND t.asset = ${row}.asset
     UNION ALL
    SELECT b.* FROM deposit b
     WHERE ${isOfBlock(row)} AND ${isOfBlock("b")} AND b.address = ${row}.address
       AND b.asset = ${row}.asset AND b.amount_units = ${row}.amount_units`;
}

/**
 * SQL: how many of the same payment stood before `row` on its chain: in its transaction, or, where blocks
 * paid it, in all blocks. One that was booked before or after another loss is of the same chain as far as no
 * loss between the two took its block.
 */
export function placeAmongSame(row: string): string {
  return `CASE WHEN ${isOfBlock(row)} THEN (
      SELECT count(*) FROM deposit x
       WHERE ${isOfBlock("x")} AND x.address = ${row}.address AND x.asset = ${row}.asset
         AND x.amount_units = ${row}.amount_units
         AND (x.height, x.op_index) < (${row}.height, ${row}.op_index)
         AND NOT EXISTS (SELECT 1 FROM chain_rewind r
                          WHERE r.id > least(x.rewind, ${row}.rewind)
                            AND r.id <= greatest(x.rewind, ${row}.rewind)
                            AND r.to_height < x.height))
    ELSE (
      SELECT count(*) FROM deposit x
       WHERE x.tx_hash = ${row}.tx_hash AND x.address = ${row}.address AND x.asset = ${row}.asset
         AND x.rewind = ${row}.rewind AND x.op_index < ${row}.op_index) END`;
}
