/** Pure: which of several wallets pays which request. The rule stands here and nowhere else. */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";

/** An active wallet that a worker holds and that is not frozen. */
export interface Payer {
  readonly wallet: Address;
  /** Balance on the chain less what its open slots may still take. */
  readonly freeAtoken: Atoken;
  /** Nonces that are taken and not booked. */
  readonly openSlots: number;
}

/** A request as far as the choice needs it. */
export interface PayableRequest {
  /** Value and the fee of a plain transfer, at least. */
  readonly neededAtoken: Atoken;
  /** It has waited so long that any wallet which covers it pays it. */
  readonly isOverdue: boolean;
}

/**
 * Each request, in the order of the queue, is paid by the wallet that covers it and has the most free
 * balance for each nonce that is open: free / (open + 1), where what this choice gave a wallet before
 * counts. So a wallet with twice the coins gets twice the payments, and a lane that is deep gets
 * fewer. A wallet whose window is full takes none; among equals the first registered one takes it. An
 * overdue request is taken by whoever asks and covers it: its payer had its time.
 * @param payers in the order of their registration
 * @param asking the wallet whose worker asks
 * @returns for each request its payer; undefined when nobody covers it now
 */
export function choosePayers(
  requests: readonly PayableRequest[],
  payers: readonly Payer[],
  { asking, maxOpenSlots }: { readonly asking: Address; readonly maxOpenSlots: number },
): (Address | undefined)[] {
  const lanes = payers.map((payer) => ({ ...payer }));
  return requests.map(({ neededAtoken, isOverdue }) => {
    const able = lanes.filter(
      ({ freeAtoken, openSlots }) => freeAtoken >= neededAtoken && openSlots < maxOpenSlots,
    );
    const own = isOverdue ? able.find(({ wallet }) => wallet === asking) : undefined;
    const payer = own ?? able.reduce<Lane | undefined>(better, undefined);
    if (payer === undefined) return undefined;
    payer.freeAtoken -= neededAtoken;
    payer.openSlots += 1;
    return payer.wallet;
  });
}

interface Lane {
  readonly wallet: Address;
  freeAtoken: Atoken;
  openSlots: number;
}

/** Compares free / (open + 1) without dividing. */
function better(best: Lane | undefined, next: Lane): Lane {
  if (best === undefined) return next;
  const ofBest = best.freeAtoken * BigInt(next.openSlots + 1);
  const ofNext = next.freeAtoken * BigInt(best.openSlots + 1);
  return ofNext > ofBest ? next : best;
}
