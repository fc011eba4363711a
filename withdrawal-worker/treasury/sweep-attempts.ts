/**
 * What is signed for a sweep, on the one nonce that it has: what was intended, a dearer one when that is
 * not mined in time, and one to another wallet when the one it goes to may be given nothing any more.
 */
import type { Address } from "../../chain/address.js";
import { encodeTransfer } from "../../chain/evm/erc20.js";
import { hexToBytes } from "../../chain/hex.js";
import type { TreasuryRules } from "../../ledger/policy/policy.js";
import type { NewSweepAttempt, Sweep } from "../../ledger/treasury/sweeps.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import { lower, raisePrice } from "../gas.js";
import type { WalletView } from "../lane/wallet-node.js";
import type { AddressState } from "./sweep-node.js";
import { valueAt } from "./sweep-plan.js";
import type { TreasuryContext } from "./treasury-context.js";

/** What signing needs to know of a round. */
export interface SigningRound {
  readonly rules: TreasuryRules;
  readonly view: Pick<WalletView, "suggestedPriceAtoken">;
  /** Wallets of this home that may be given coins now. */
  readonly wallets: readonly Address[];
}

/** An open sweep with its address on the chain. */
export interface SeenSweep {
  readonly sweep: Sweep;
  readonly state: AddressState;
}

/**
 * What was intended: the same bytes after a crash, unless its wallet may be given nothing any more. What
 * was not stored was never sent, so that another wallet in its place is no second sweep.
 */
export function firstAttempt(
  context: TreasuryContext,
  { sweep, state }: SeenSweep,
  { wallets }: SigningRound,
): NewSweepAttempt | undefined {
  const { gas } = sweep;
  if (gas === undefined || state.nonce !== gas.nonce || sweep.isPaused) return undefined;
  const wallet = wallets.find((each) => each === sweep.wallet) ?? wallets[0];
  if (wallet === undefined) return undefined;
  return attempt(context, sweep, { n: 0, wallet, gasPriceAtoken: gas.gasPriceAtoken });
}

/** What is not mined in time, or goes to the wrong wallet, is replaced on the same nonce. */
export function nextAttempt(
  context: TreasuryContext,
  { sweep, state }: SeenSweep,
  round: SigningRound,
): NewSweepAttempt | undefined {
  const { gas, attempts } = sweep;
  const last = attempts.at(-1);
  if (gas === undefined || last === undefined || state.nonce !== gas.nonce) return undefined;
  if ((sweep.state !== "signed" && sweep.state !== "sent") || sweep.isPaused) return undefined;
  const n = last.n + 1;
  const wallet = round.wallets.find((each) => each === last.wallet);
  if (wallet === undefined) {
    const [other] = round.wallets;
    if (other === undefined) return undefined;
    // Where nothing dearer is allowed it still takes its place wherever a pool has lost the former.
    const gasPriceAtoken = dearerPrice(context, { sweep, state }, round) ?? last.gasPriceAtoken;
    return attempt(context, sweep, { n, wallet: other, gasPriceAtoken });
  }
  if (last.ageMs < context.settings.repriceAfterMs) return undefined;
  const gasPriceAtoken = dearerPrice(context, { sweep, state }, round);
  return gasPriceAtoken === undefined
    ? undefined
    : attempt(context, sweep, { n, wallet, gasPriceAtoken });
}

/**
 * A price that replaces the last one; undefined where policy, cap or balance forbid it. Of a token it is the
 * dearest that they allow where the suggested one is beyond them, as a node may take it already: coins of
 * the address are there to pay for it. Of coins every price takes from what arrives, and less than what is
 * suggested would take it for nothing.
 */
function dearerPrice(
  { settings }: TreasuryContext,
  { sweep, state }: SeenSweep,
  { rules, view }: SigningRound,
): bigint | undefined {
  const { gas, gasLimit, contract, attempts } = sweep;
  const formerAtoken = attempts.at(-1)?.gasPriceAtoken;
  if (gas === undefined || formerAtoken === undefined) return undefined;
  const { suggestedPriceAtoken: suggestedAtoken } = view;
  const { priceCapAtoken } = settings.gas;
  const max = rules.assets.get(sweep.asset)?.sweepFeeMaxAtoken ?? 0n;
  if (contract !== undefined) {
    const payableAtoken = lower(max, state.balanceAtoken) / gasLimit;
    return raisePrice(formerAtoken, { suggestedAtoken }, lower(priceCapAtoken, payableAtoken));
  }
  const gasPriceAtoken = raisePrice(formerAtoken, { suggestedAtoken }, priceCapAtoken);
  if (gasPriceAtoken === undefined) return undefined;
  if (feeOf({ gasLimit, gasPriceAtoken }) > max) return undefined;
  return valueAt(sweep, gas.gasPriceAtoken, gasPriceAtoken) > 0n ? gasPriceAtoken : undefined;
}

function attempt(
  { signer, chainId, log }: TreasuryContext,
  sweep: Sweep,
  { n, wallet, gasPriceAtoken }: Pick<NewSweepAttempt, "n" | "wallet" | "gasPriceAtoken">,
): NewSweepAttempt | undefined {
  const { id, address, index, asset, contract, amountUnits, gasLimit, gas } = sweep;
  if (gas === undefined) return undefined;
  const transfer = { to: wallet, amountUnits };
  const signed = signer.sign({
    address,
    index,
    asset,
    wallet,
    amountUnits,
    chainId,
    nonce: gas.nonce,
    to: contract ?? wallet,
    valueAtoken: contract === undefined ? valueAt(sweep, gas.gasPriceAtoken, gasPriceAtoken) : 0n,
    data: contract === undefined ? new Uint8Array(0) : hexToBytes(encodeTransfer(transfer)),
    gasLimit,
    gasPriceAtoken,
  });
  if (signed.kind === "refused") {
    log.warn({ sweep: id, reason: signed.reason }, "a sweep is not signed");
    return undefined;
  }
  const { raw, hash } = signed;
  return { sweepId: id, n, wallet, raw, hash, gasPriceAtoken };
}
