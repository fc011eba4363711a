/**
 * From the operations of a request to what somebody wants to do with stake, rewards or a vote. The
 * operations have to be those that the intent would be written with, in any order.
 */
import { MAX_ATOKEN } from "../../chain/units.js";
import type { Address } from "../../chain/address.js";
import { type StakingCall, VOTE_NAMES } from "../../chain/staking/calls.js";
import { SidecarError } from "../rosetta/errors.js";
import { type Amount, isTokenCurrency, parseCurrency } from "../rosetta/identifiers.js";
import {
  fault,
  inside,
  type Place,
  readFields,
  readMaybe,
  readSigned,
  readText,
  readUnsigned,
} from "../rosetta/request-fields.js";
import {
  stakeIntent,
  type StakeIntent,
  stakeOperations,
  type StakeType,
} from "../rosetta/stake-intent.js";
import {
  type AccountIdentifier,
  type AccountKey,
  claimAccount,
  claimAmount,
  parseAccountKey,
  resolveClaimCurrency,
} from "../rosetta/sub-accounts.js";
import { readOperation, refuseContent } from "./operation-fields.js";

/** Proposals are counted in 64 bits, and heights as far as JSON counts. */
const MAX_PROPOSAL = 2n ** 64n - 1n;
const MAX_HEIGHT = BigInt(Number.MAX_SAFE_INTEGER);

/** One operation, read. */
interface Side {
  readonly key: AccountKey;
  readonly account: AccountIdentifier;
  readonly amount: Amount;
  readonly value: bigint;
  /** The validator whose shares the amount counts; undefined for other currencies. */
  readonly validator: Address | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly place: Place;
}

/**
 * The intent of operations that all have one type.
 * @throws INVALID_OPERATIONS, INVALID_ACCOUNT, SUB_ACCOUNT_NOT_SUPPORTED, UNKNOWN_CURRENCY
 */
export function parseStakeIntent(
  type: StakeType,
  items: readonly unknown[],
  place: Place,
): StakeIntent {
  const sides = items.map((item, index) => readSide(item, index, inside(place, index)));
  const intent = INTENTS[type](sides, place);
  const wanted = stakeOperations(intent).map(textOf).toSorted();
  if (sides.map(textOf).toSorted().join() === wanted.join()) return intent;
  const expected = stakeOperations(intent).map(({ account, amount }) => ({ account, amount }));
  throw fault(place, `these operations and no others: ${JSON.stringify(expected)}`);
}

/** Identity of an operation: whose, how much, and what else it says. */
function textOf({
  account,
  amount,
  metadata = {},
}: Pick<Side, "account" | "amount"> & { readonly metadata?: Side["metadata"] }): string {
  const told = Object.entries(metadata).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([account, amount.value, amount.currency, told]);
}

const INTENTS: Readonly<Record<StakeType, (sides: readonly Side[], place: Place) => StakeIntent>> =
  {
    DELEGATE(sides, place) {
      const { validator, amountAtoken } = staked(sides, place);
      const { key } = side(sides, place, "own");
      return intentOf(key.address, { kind: "delegate", validator, amountAtoken }, place);
    },
    UNDELEGATE(sides, place) {
      const { validator, amountAtoken } = staked(sides, place);
      const { key } = side(sides, place, "unbonding");
      return intentOf(key.address, { kind: "undelegate", validator, amountAtoken }, place);
    },
    REDELEGATE(sides, place) {
      const { key } = side(sides, place, "own");
      const stakes = sides.filter((one) => one.key.sub?.kind === "stake");
      const source = stakes.find(({ value }) => value < 0n)?.key.sub?.validator;
      const to = stakes.find(({ value }) => value > 0n);
      const destination = to?.key.sub?.validator;
      if (source === undefined || to === undefined || destination === undefined) {
        throw fault(place, "the stake of one validator less, that of another one more");
      }
      if (source === destination) throw fault(place, "two different validators");
      const amountAtoken = to.value;
      return intentOf(
        key.address,
        { kind: "redelegate", source, destination, amountAtoken },
        place,
      );
    },
    CANCEL_UNBONDING(sides, place) {
      const { validator, amountAtoken } = staked(sides, place);
      const { key, metadata, place: at } = side(sides, place, "unbonding");
      const heightPlace = inside(inside(at, "metadata"), "creation_height");
      const creationHeight = readUnsigned(metadata["creation_height"], heightPlace, MAX_HEIGHT);
      const call = { kind: "cancelUnbonding", validator, amountAtoken, creationHeight } as const;
      return intentOf(key.address, call, place);
    },
    CLAIM(sides, place) {
      const commission = sides.find(({ key }) => key.sub?.kind === "commission");
      if (commission !== undefined) {
        return intentOf(commission.key.address, { kind: "withdrawCommission" }, place);
      }
      const { key, validator } = side(sides, place, "staked");
      if (validator === undefined) throw fault(place, "shares of a validator");
      return intentOf(key.address, { kind: "withdrawRewards", validator }, place);
    },
    VOTE(sides, place) {
      const { key, metadata, place: at } = side(sides, place, "own");
      const inMetadata = (name: string) => inside(inside(at, "metadata"), name);
      const proposalId = readUnsigned(
        metadata["proposal_id"],
        inMetadata("proposal_id"),
        MAX_PROPOSAL,
      );
      const option = VOTE_NAMES.find((name) => name === metadata["option"]);
      if (option === undefined)
        throw fault(inMetadata("option"), `one of ${VOTE_NAMES.join(", ")}`);
      return intentOf(key.address, { kind: "vote", proposalId, option }, place);
    },
  };

function intentOf(from: Address, call: StakingCall, place: Place): StakeIntent {
  if ("amountAtoken" in call && call.amountAtoken <= 0n) throw fault(place, "an amount above zero");
  return stakeIntent(from, call);
}

/** The validator whose stake changes, and by how much. */
function staked(sides: readonly Side[], place: Place) {
  const { key, value } = side(sides, place, "stake");
  const validator = key.sub?.validator;
  if (validator === undefined) throw fault(place, "the stake of a validator");
  return { validator, amountAtoken: value < 0n ? -value : value };
}

/** The one operation on a kind of account; "own" is the account itself. */
function side(sides: readonly Side[], place: Place, kind: string): Side {
  const found = sides.filter(({ key }) => (key.sub?.kind ?? "own") === kind);
  const [one] = found;
  if (one !== undefined && found.length === 1) return one;
  throw fault(place, kind === "own" ? "one operation on the account itself" : `one on ${kind}`);
}

function readSide(value: unknown, index: number, place: Place): Side {
  const fields = readOperation(value, index, place);
  const key = parseAccountKey(fields["account"], inside(place, "account"));
  const at = inside(place, "amount");
  const amount = readFields(fields["amount"], at, ["value", "currency", "metadata"]);
  refuseContent(amount["metadata"], inside(at, "metadata"));
  const number = readSigned(amount["value"], inside(at, "value"), MAX_ATOKEN);
  const currencyPlace = inside(at, "currency");
  const validator = readShareValidator(key, amount["currency"], currencyPlace);
  const claim = {
    kind: key.sub?.kind ?? ("own" as const),
    account: key.address,
    validator: key.sub?.validator ?? validator,
  };
  return {
    key,
    account: claimAccount(claim),
    amount: claimAmount(claim, number),
    value: number,
    validator,
    metadata: readDetails(fields["metadata"], inside(place, "metadata")),
    place,
  };
}

/** Checks that the account holds the currency. @returns the validator of shares */
function readShareValidator(
  { sub }: AccountKey,
  value: unknown,
  place: Place,
): Address | undefined {
  if (sub === undefined) {
    if (isTokenCurrency(value, place)) return undefined;
  } else {
    const currency = resolveClaimCurrency(parseCurrency(value, place));
    const isShares = sub.kind === "staked";
    if (currency !== undefined && (currency.kind === "share") === isShares) {
      return currency.kind === "share" ? currency.validator : undefined;
    }
  }
  throw new SidecarError("UNKNOWN_CURRENCY", { field: place.at });
}

function readDetails(value: unknown, place: Place): Readonly<Record<string, string>> {
  const fields = readMaybe(value, place, readFields) ?? {};
  const texts = Object.entries(fields).map(([key, text]) => {
    return [key, readText(text, inside(place, key))] as const;
  });
  return Object.fromEntries(texts);
}
