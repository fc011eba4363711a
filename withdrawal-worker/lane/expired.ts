/** Requests that are too late, whichever wallet was to pay them. */
import { checkOthers } from "./slots/slot-share.js";
import type { LaneContext, Round } from "./lane-context.js";
import { stopsNewAlone } from "./lane-faults.js";

/** What ending them came to. */
export interface Expired {
  /** More may be waiting. */
  readonly hasMore: boolean;
  /** Why nothing ended; for the round's end: what has its nonce does not wait for it. */
  readonly fault?: Error;
}

/** Ends what is too late, once the nonces of all wallets have been looked at. */
export async function endExpired(context: LaneContext, round: Round): Promise<Expired> {
  const { ledger, settings } = context;
  if (!(await ledger.hasExpired())) return { hasMore: false };
  try {
    await checkOthers(context, round);
  } catch (fault) {
    if (!stopsNewAlone(fault)) throw fault;
    return { hasMore: false, fault };
  }
  const limit = settings.batchSize;
  return { hasMore: (await ledger.cancelExpired({ limit })) === limit };
}
