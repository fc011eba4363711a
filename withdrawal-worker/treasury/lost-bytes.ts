/**
 * Sweeps whose signed bytes a database has lost, as a standby that takes over without the last commits:
 * it has the intent, and the chain the transaction. The same intent gives the same bytes (RFC 6979): where
 * the chain has a receipt of one of these the nonce was used by the sweep itself.
 */
import { regainAttempts } from "../../ledger/treasury/mined-sweeps.js";
import { intendedAttempts, type SeenSweep, type SigningRound } from "./sweep-attempts.js";
import type { TreasuryContext } from "./treasury-context.js";

/**
 * Looks for them, and stores what is found; it ends like all sweeps then.
 * @param used sweeps whose nonce the chain has used
 * @returns those of which nothing was found. What was never signed here is not among them while nothing may
 *   be signed: nobody can tell whose it is
 */
export async function withoutRegained(
  context: TreasuryContext,
  used: readonly SeenSweep[],
  round: SigningRound & { readonly maySign: boolean; readonly signal: AbortSignal },
): Promise<readonly SeenSweep[]> {
  const { database, node, log } = context;
  const { maySign, signal } = round;
  const isUnsigned = ({ sweep }: SeenSweep) => sweep.attempts.length === 0;
  if (!used.some(isUnsigned)) return used;
  if (!maySign) return used.filter((each) => !isUnsigned(each));
  const wanted = used.filter(isUnsigned).flatMap((seen) => intendedAttempts(context, seen, round));
  if (wanted.length === 0) return used;
  const hashes = wanted.map(({ hash }) => hash);
  const { byHash } = await node.receipts(hashes, { signal });
  const mined = wanted.filter(({ hash }) => byHash.has(hash));
  if (mined.length === 0) return used;
  const regained = await regainAttempts(database, mined);
  for (const { sweepId, hash } of mined) {
    if (!regained.has(sweepId)) continue;
    log.warn({ sweep: sweepId, hash }, "a sweep whose bytes the ledger had lost is on the chain");
  }
  return used.filter(({ sweep }) => !regained.has(sweep.id));
}
