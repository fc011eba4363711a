/** Pure: a sub-account's balances as Rosetta has them, and what explains them. */
import { type Address, operatorText } from "../../chain/address.js";
import type { NodeClaim } from "../../rpc-client/indexing/claims.js";
import { SidecarError } from "../rosetta/errors.js";
import { type Amount, currencyAmount, parseCurrency } from "../rosetta/identifiers.js";
import { fault, inside, readItems, readMaybe } from "../rosetta/request-fields.js";
import {
  CLAIM_CURRENCY,
  resolveClaimCurrency,
  shareCurrency,
  type SubAccount,
} from "../rosetta/sub-accounts.js";

/** Validators whose shares are wanted; undefined for everything that the sub-account holds. */
export type WantedShares = readonly Address[] | undefined;

/**
 * `currencies` of a request for a sub-account: shares of validators for `staked`, claims for all others.
 * @throws UNKNOWN_CURRENCY for any other one: unanswered it would look like nothing
 */
export function parseClaimCurrencies(value: unknown, { kind }: SubAccount): WantedShares {
  const place = { at: "currencies" };
  const items = readMaybe(value, place, readItems) ?? [];
  const isShares = kind === "staked";
  const seen = new Set<string>();
  const validators = items.flatMap((item, position) => {
    const at = inside(place, position);
    const currency = resolveClaimCurrency(parseCurrency(item, at));
    if (currency === undefined || (currency.kind === "share") !== isShares) {
      const expected = isShares ? "shares of a validator" : CLAIM_CURRENCY.symbol;
      throw new SidecarError("UNKNOWN_CURRENCY", { field: at.at, expected });
    }
    const name = currency.kind === "share" ? currency.validator : "";
    if (seen.has(name)) throw fault(at, "each currency once");
    seen.add(name);
    return currency.kind === "share" ? [currency.validator] : [];
  });
  return items.length === 0 ? undefined : validators;
}

/** The balances; of shares those with every validator where none is named, and zero for strangers. */
export function claimBalances(
  { amountUnits, delegations }: NodeClaim,
  { kind }: SubAccount,
  wanted: WantedShares,
): Amount[] {
  if (kind !== "staked") return [currencyAmount(amountUnits, CLAIM_CURRENCY)];
  const shares = new Map(delegations.map((one) => [one.validator, one.shares]));
  return (wanted ?? [...shares.keys()]).map((validator) =>
    currencyAmount(shares.get(validator) ?? 0n, shareCurrency(validator)),
  );
}

/** What the balances are worth at the height: the part that changes without an operation. */
export function explain(
  claim: NodeClaim,
  { kind }: SubAccount,
): Record<string, unknown> | undefined {
  switch (kind) {
    case "staked":
      return {
        delegations: claim.delegations.map((one) => ({
          validator: operatorText(one.validator),
          shares: one.shares.toString(),
          amount: one.amountAtoken.toString(),
          rewards: one.rewardsAtoken.toString(),
        })),
      };
    case "unbonding":
      return {
        entries: claim.entries.map((entry) => ({
          validator: operatorText(entry.validator),
          creation_height: entry.height.toString(),
          completion_time: new Date(entry.endMs).toISOString(),
          amount: entry.amountAtoken.toString(),
          after_slashes: entry.leftAtoken.toString(),
        })),
      };
    case "commission":
      return { withdrawable: (claim.withdrawableAtoken ?? claim.amountUnits).toString() };
    default:
      return undefined;
  }
}
