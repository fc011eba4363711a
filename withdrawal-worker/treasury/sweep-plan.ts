/** Pure: what is done about an address that may have coins. */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";
import type { TreasuryAsset } from "../../ledger/policy/policy.js";
import type { DueSweep } from "../../ledger/assets/sweep-due.js";
import { MAX_SWEEP_FAILURES, type NewSweep } from "../../ledger/treasury/sweeps.js";
import { unlisted } from "../signers/signer-port.js";
import type { AddressState } from "./sweep-node.js";

/** What is done about an address with coins: they are swept, or it waits, and for what. */
export type SweepDecision =
  | { readonly kind: "sweep"; readonly sweep: NewSweep }
  | ({ readonly kind: "wait"; readonly reason: string } & Wait);

/** How long an address waits, and who is told of it. */
export interface Wait {
  /** 0: nothing is there; a deposit makes it due again. */
  readonly delayMs: number;
  /** So long it may be so until the log says it; undefined where it is in order, or told otherwise. */
  readonly tellAfterMs: number | undefined;
}

/** What the decision about an address goes by. */
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

const MINUTE_MS = 60_000;

/** By what is waited for. */
const WAITS = {
  deposit: { delayMs: 0, tellAfterMs: undefined },
  /** What may be worth it later, by other rules, which `FollowedRules` notices, or at a lower price. */
  worth: { delayMs: 1_440 * MINUTE_MS, tellAfterMs: undefined },
  list: { delayMs: 60 * MINUTE_MS, tellAfterMs: undefined },
  price: { delayMs: 10 * MINUTE_MS, tellAfterMs: 0 },
  token: { delayMs: 60 * MINUTE_MS, tellAfterMs: 0 },
  /** It is over with the next blocks, as a rule. */
  node: { delayMs: MINUTE_MS, tellAfterMs: 10 * MINUTE_MS },
} as const satisfies Record<string, Wait>;

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
  const wait = (what: keyof typeof WAITS, reason: string) => {
    return { kind: "wait" as const, reason, ...WAITS[what] };
  };
  if (rules === undefined) return wait("worth", "the policy does not name the asset");
  if (!facts.hasKey) return wait("worth", "its key is of another seed");
  if (!facts.isListed) return wait("list", unlisted(due.asset));
  if (due.isPaused) return wait("token", "the token is paused");
  if (due.failures >= MAX_SWEEP_FAILURES) return wait("token", "its sweeps fail");
  if (units === undefined) return wait("token", "the token does not tell its balance");
  if (units === 0n) return wait("deposit", "nothing is there");
  if (state.nonce < due.nextNonce) return wait("node", "the node is behind");
  if (state.pendingNonce > state.nonce) return wait("node", "the pool has one of it");
  if (units < rules.sweepMinimumUnits) return wait("worth", "less than the minimum");
  if (gasLimit === undefined) return wait("node", "the node does not say what it takes");
  if (gasLimit === "refused") return wait("token", "the token refuses");
  const feeAtoken = gasLimit * gasPriceAtoken;
  if (feeAtoken > rules.sweepFeeMaxAtoken) return wait("price", "the fee is too high");
  const { address, asset, contract } = due;
  const common = { address, asset, wallet: facts.wallet, gasLimit };
  const gas = { nonce: state.nonce, gasPriceAtoken };
  if (contract === undefined) {
    const amountUnits = units - feeAtoken;
    if (amountUnits <= 0n || amountUnits < rules.sweepMinimumUnits) {
      return wait("worth", "less than the minimum beside its fee");
    }
    return { kind: "sweep", sweep: { ...common, amountUnits, gas } };
  }
  if (missingGas(state.balanceAtoken, { gasLimit, gasPriceAtoken }) === 0n) {
    return { kind: "sweep", sweep: { ...common, amountUnits: units, gas } };
  }
  if (topUpOf(state.balanceAtoken, { gasLimit, gasPriceAtoken }) > facts.topUpMaxAtoken) {
    return wait("price", "its gas is above the policy's");
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
