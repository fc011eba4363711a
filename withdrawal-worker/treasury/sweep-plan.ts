/** Pure: what is done about an address that may have coins. */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";
import type { TreasuryAsset } from "../../ledger/policy/policy.js";
import type { DueSweep } from "../../ledger/assets/sweep-due.js";
import { MAX_SWEEP_FAILURES, type NewSweep } from "../../ledger/treasury/sweeps.js";
import { unlisted } from "../signers/signer-port.js";
import type { AddressState } from "./sweep-node.js";

/** What is decided. */
export type SweepDecision =
  | { readonly kind: "sweep"; readonly sweep: NewSweep }
  /** 0: nothing is there; a deposit makes it due again. */
  | { readonly kind: "wait"; readonly delayMs: number; readonly reason: string };

/** What is known of an address. */
export interface SweepFacts {
  readonly due: DueSweep;
  /** False for an address of another seed than the treasury's: nothing can be signed for it. */
  readonly hasKey: boolean;
  /** False for a token that the treasury's list does not name by this contract: nothing is signed for it. */
  readonly isListed: boolean;
  readonly state: AddressState;
  /** Of the asset; undefined where the token does not tell. */
  readonly units: bigint | undefined;
  /**
   * What its transfer takes with a margin, unless the token refuses it; undefined where the node did
   * not say, which may be another time.
   */
  readonly gasLimit: bigint | "refused" | undefined;
  readonly gasPriceAtoken: Atoken;
  /** Undefined where the policy does not name the asset. */
  readonly rules: TreasuryAsset | undefined;
  readonly topUpMaxAtoken: Atoken;
  readonly wallet: Address;
}

/** What may be worth it later: by other rules, which `FollowedRules` notices, or at a lower price. */
const DUST_DELAY_MS = 86_400_000;
const DEAR_DELAY_MS = 600_000;
const PENDING_DELAY_MS = 60_000;
const REFUSED_DELAY_MS = 3_600_000;

/** What an address needs beside its own coins before a token can leave it; 0 for nothing. */
export function missingGas(
  balanceAtoken: Atoken,
  { gasLimit, gasPriceAtoken }: { readonly gasLimit: bigint; readonly gasPriceAtoken: Atoken },
): bigint {
  const feeAtoken = gasLimit * gasPriceAtoken;
  return balanceAtoken >= feeAtoken ? 0n : feeAtoken - balanceAtoken;
}

/** What a top-up gives: a quarter more than the fee, since the price may rise until it is used. */
export function topUpOf(
  balanceAtoken: Atoken,
  gas: { readonly gasLimit: bigint; readonly gasPriceAtoken: Atoken },
): bigint {
  const wantedAtoken = (gas.gasLimit * gas.gasPriceAtoken * 5n + 3n) / 4n;
  return wantedAtoken > balanceAtoken ? wantedAtoken - balanceAtoken : 0n;
}

/** Decides about one asset of one address. */
export function decideSweep(facts: SweepFacts): SweepDecision {
  const { due, state, units, gasLimit, gasPriceAtoken, rules } = facts;
  const wait = (delayMs: number, reason: string) => ({ kind: "wait" as const, delayMs, reason });
  if (rules === undefined) return wait(DUST_DELAY_MS, "the policy does not name the asset");
  if (!facts.hasKey) return wait(DUST_DELAY_MS, "its key is of another seed");
  if (!facts.isListed) return wait(REFUSED_DELAY_MS, unlisted(due.asset));
  if (due.isPaused) return wait(REFUSED_DELAY_MS, "the token stands still");
  if (due.failures >= MAX_SWEEP_FAILURES) return wait(REFUSED_DELAY_MS, "its sweeps fail");
  if (units === undefined) return wait(REFUSED_DELAY_MS, "the token does not tell its balance");
  if (units === 0n) return wait(0, "nothing is there");
  if (state.nonce < due.nextNonce) return wait(PENDING_DELAY_MS, "the node is behind");
  if (state.pendingNonce > state.nonce) return wait(PENDING_DELAY_MS, "the pool has one of it");
  if (units < rules.sweepMinimumUnits) return wait(DUST_DELAY_MS, "less than the minimum");
  if (gasLimit === undefined) return wait(PENDING_DELAY_MS, "the node does not say what it takes");
  if (gasLimit === "refused") return wait(REFUSED_DELAY_MS, "the token refuses");
  const feeAtoken = gasLimit * gasPriceAtoken;
  if (feeAtoken > rules.sweepFeeMaxAtoken) return wait(DEAR_DELAY_MS, "the fee is too high");
  const { address, asset, contract } = due;
  const common = { address, asset, wallet: facts.wallet, gasLimit };
  const gas = { nonce: state.nonce, gasPriceAtoken };
  if (contract === undefined) {
    const amountUnits = units - feeAtoken;
    if (amountUnits <= 0n || amountUnits < rules.sweepMinimumUnits) {
      return wait(DUST_DELAY_MS, "less than the minimum beside its fee");
    }
    return { kind: "sweep", sweep: { ...common, amountUnits, gas } };
  }
  if (missingGas(state.balanceAtoken, { gasLimit, gasPriceAtoken }) === 0n) {
    return { kind: "sweep", sweep: { ...common, amountUnits: units, gas } };
  }
  if (topUpOf(state.balanceAtoken, { gasLimit, gasPriceAtoken }) > facts.topUpMaxAtoken) {
    return wait(DEAR_DELAY_MS, "its gas is above the policy's");
  }
  return { kind: "sweep", sweep: { ...common, amountUnits: units, gas: undefined } };
}

/** What a native attempt sends at another price: value and fee together stay the same. */
export function valueAt(
  sweep: { readonly amountUnits: bigint; readonly gasLimit: bigint },
  firstPriceAtoken: Atoken,
  priceAtoken: Atoken,
): bigint {
  return sweep.amountUnits + sweep.gasLimit * firstPriceAtoken - sweep.gasLimit * priceAtoken;
}
