/**
 * Sweeps that a chain has lost: their bytes are sent again as they are. Where none of them can be paid, since
 * deposits were lost with them, or they go to a wallet that may be given nothing any more, others are signed
 * on the same nonce.
 */
import type { Address } from "../../chain/address.js";
import type { Hex } from "../../chain/hex.js";
import type { DueSweep } from "../../ledger/assets/sweep-due.js";
import { readStoredPlaces, type StoredPlace } from "../../ledger/treasury/stored-places.js";
import { readSweepsAt } from "../../ledger/treasury/sweeps.js";
import { maySend, payableWallets } from "./may-send.js";
import { lostAttempt, type SigningRound, storeAttempts } from "./sweep-attempts.js";
import type { AddressState } from "./sweep-node.js";
import type { TreasuryContext } from "./treasury-context.js";

/** Addresses that one line of the log names. */
const MAX_NAMED = 5;

/** An address on the chain, and which nonces of it are known to be used. */
type SeenAddress = Pick<DueSweep, "address" | "nextNonce"> & { readonly state: AddressState };

/** What is known for one round. */
interface LostSweepRound extends SigningRound {
  /** Losses of blocks that the watcher had gone back for before the chain was looked at. */
  readonly rewinds: number;
  readonly maySign: boolean;
  readonly signal: AbortSignal;
}

/**
 * A nonce that was used and is free again: the chain came back without that sweep. Its stored bytes are
 * sent as they are, which a node that is only behind refuses; where none of them will do, others are signed
 * first. Those go out also while the pool has the former ones.
 * @returns what is stored for the nonces that are free
 */
export async function sendVanished(
  context: TreasuryContext,
  looked: readonly SeenAddress[],
  round: LostSweepRound,
): Promise<readonly StoredPlace[]> {
  const { database, node, log } = context;
  const lost = looked.filter(({ nextNonce, state }) => state.nonce < nextNonce);
  if (lost.length === 0) return [];
  if (round.maySign) await signAnew(context, lost, round);
  const wallets = await payableWallets(context);
  const free = lost.filter(({ state }) => !isPooled(state));
  const places = await readStoredPlaces(database, placesOf(free), wallets);
  tellStuck(context, places);
  const again = places.flatMap((place) => place.raws);
  const pooled = lost.filter(({ state }) => isPooled(state));
  const raws = [...again, ...(await redirected(context, pooled, wallets))];
  if (raws.length === 0 || !(await maySend(context))) return places;
  await node.send(raws, { signal: round.signal });
  const what = "sweeps that the chain has lost are sent again";
  if (again.length > 0) log.warn({ sweeps: again.length }, what);
  return places;
}

/** What was swept in blocks that are lost stays so by its row, and may be signed for as if it were open. */
async function signAnew(
  context: TreasuryContext,
  lost: readonly SeenAddress[],
  round: LostSweepRound,
): Promise<void> {
  const { database, log } = context;
  const states = new Map(lost.map(({ address, state }) => [address, state]));
  const attempts = (await readSweepsAt(database, placesOf(lost))).flatMap((sweep) => {
    const state = states.get(sweep.address);
    return state === undefined ? [] : (lostAttempt(context, { sweep, state }, round) ?? []);
  });
  if (attempts.length === 0) return;
  log.warn({ sweeps: attempts.length }, "sweeps that the chain has lost are signed anew");
  await storeAttempts(database, attempts);
}

/**
 * Of sweeps some of whose bytes go to a wallet that may be given nothing any more the newest that do not: the
 * pool may have any of them.
 */
async function redirected(
  { database }: TreasuryContext,
  pooled: readonly SeenAddress[],
  wallets: readonly Address[],
): Promise<readonly Hex[]> {
  if (pooled.length === 0) return [];
  const sweeps = await readSweepsAt(database, placesOf(pooled));
  return sweeps.flatMap(({ state, attempts }) => {
    const payable = attempts.filter(({ wallet }) => wallets.includes(wallet));
    // One that a node has not come to is no lost one.
    if (state !== "sent" || payable.length === attempts.length) return [];
    return payable.slice(-1).map(({ raw }) => raw);
  });
}

function isPooled({ nonce, pendingNonce }: AddressState): boolean {
  return pendingNonce !== nonce;
}

function placesOf(lost: readonly SeenAddress[]) {
  return lost.map(({ address, state: { nonce } }) => ({ address, nonce }));
}

/** Free nonces of which nothing can be sent by itself. */
function tellStuck({ log }: TreasuryContext, places: readonly StoredPlace[]): void {
  const tell = (stuck: readonly StoredPlace[], what: string) => {
    if (stuck.length === 0) return;
    const addresses = stuck.slice(0, MAX_NAMED).map(({ address }) => address);
    log.warn({ count: stuck.length, addresses }, what);
  };
  const unsent = places.filter(({ raws }) => raws.length === 0);
  tell(
    unsent.filter(({ isSigned }) => isSigned),
    "sweeps that a chain may have lost went to wallets that take no coins now",
  );
  tell(
    unsent.filter(({ isOurs, isSigned }) => isOurs && !isSigned),
    "a chain may have lost transactions that used nonces of sweeps which were never signed: " +
      "nothing is swept there before they are used again, by hand",
  );
}

/**
 * Whether the chain has lost what used an address' nonce, and nothing of ours was ever meant for it: it is as
 * good as a new one. One that is only behind what the ledger has booked may show any.
 */
export function freeOf(
  vanished: readonly StoredPlace[],
  { rewinds, isAsBooked }: Pick<LostSweepRound, "rewinds" | "isAsBooked">,
): (address: Address) => boolean {
  const free = vanished.filter(({ isOurs }) => !isOurs).map(({ address }) => address);
  const addresses = new Set(rewinds > 0 && isAsBooked ? free : []);
  return (address) => addresses.has(address);
}
