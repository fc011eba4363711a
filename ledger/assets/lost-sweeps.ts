/**
 * In which block a sweep is mined. Its row says where it had ended first; a chain may have lost that block
 * since, and have mined the same bytes again, or dearer ones of the same nonce: the watcher's entries say so.
 */
import { LOSS_SUFFIXES } from "../journal/entry-keys.js";
import { IS_NOT_REVERSED } from "../journal/reversals.js";

/**
 * Before hash and address in the keys of the entries by which coins leave an address; a loss of blocks stands
 * behind them.
 */
export const SWEEP_OUT_KEY = "sweep-out:";

/**
 * SQL: of a sweep `s`, whether the watcher has gone back behind the block in which it had ended, since that.
 * Losses are numbered as they are counted.
 */
const IS_DOUBTED = `EXISTS (
  SELECT 1 FROM chain_rewind r
   WHERE r.to_height < s.block_number AND r.id > coalesce(s.rewinds, 0))`;

/**
 * SQL: one row of a sweep `s`, with hash and height of what is mined of it. Of one whose block is lost there
 * is neither, and how it stands in place of how it had ended: its bytes are stored, and nodes have them.
 */
export const MINED_IN = `
  SELECT hash, height, state, reason FROM (
    SELECT s.mined_hash AS hash, s.block_number AS height, NULL AS state, NULL AS reason
     WHERE NOT ${IS_DOUBTED}
    UNION ALL
    SELECT t.hash, e.effective_height, NULL, NULL
      FROM sweep_attempt t
     CROSS JOIN ${LOSS_SUFFIXES} AS loss
      JOIN journal_entry e ON e.idem_key = '${SWEEP_OUT_KEY}' || t.hash || ':' || s.address || loss.suffix
     WHERE t.sweep_id = s.id AND ${IS_DOUBTED} AND ${IS_NOT_REVERSED}
    UNION ALL
    SELECT NULL, NULL, 'sent', 'block ' || s.block_number
             || ', in which it was mined, is lost: its bytes are sent again'
     WHERE ${IS_DOUBTED}) AS found
   ORDER BY height DESC NULLS LAST LIMIT 1`;

/** SQL: of a sweep `s` that was mined, whether its block is lost, and nothing of it is mined since. */
export const IS_LOST = `(s.state IN ('settled', 'failed') AND ${IS_DOUBTED}
  AND (SELECT mined.hash FROM (${MINED_IN}) AS mined) IS NULL)`;
