/** What 0x800 answers about validators and delegations, without changing anything. */
import {
  type Address,
  operatorText,
  toChecksumAddress,
  ZERO_ADDRESS,
} from "../../../chain/address.js";
import { accountText } from "../../../chain/abci-event.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { BASE_DENOM } from "../../../chain/units.js";
import { messageFailure } from "../../modules/message-fields.js";
import { unbondingLeft, validatorOf } from "../../modules/staking/delegating.js";
import {
  Delegations,
  ENTRY_KIND,
  type QueueEntry,
} from "../../modules/staking/delegation-record.js";
import {
  BOND_STATUS,
  type ValidatorRecord,
  Validators,
} from "../../modules/staking/validator-record.js";
import { tokensOf } from "../../modules/staking/shares.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { type NativeFunction, refusal } from "./abi-native.js";
import type { Arguments } from "./arguments.js";
import { pageOf } from "./pages.js";

/** Statuses by the names that the SDK's queries take. */
const STATUSES: ReadonlyMap<string, number | undefined> = new Map([
  ["", undefined],
  ["BOND_STATUS_UNSPECIFIED", undefined],
  ["BOND_STATUS_UNBONDED", BOND_STATUS.unbonded],
  ["BOND_STATUS_UNBONDING", BOND_STATUS.unbonding],
  ["BOND_STATUS_BONDED", BOND_STATUS.bonded],
]);

const NO_VALIDATOR: AbiValue = {
  operatorAddress: "",
  consensusPubkey: "",
  jailed: false,
  status: 0n,
  tokens: 0n,
  delegatorShares: 0n,
  description: { moniker: "", identity: "", website: "", securityContact: "", details: "" },
  unbondingHeight: 0n,
  unbondingTime: 0n,
  commission: 0n,
  minSelfDelegation: 0n,
};

/** Views by name. */
export const STAKING_VIEWS: Readonly<Record<string, NativeFunction>> = {
  delegation(args, call) {
    const { state } = call.host;
    const operator = args.operator("validatorAddress");
    const shares = new Delegations(state).shares(operator, args.address("delegatorAddress"));
    const amount = shares === 0n ? 0n : tokensOf(new Validators(state).of(operator), shares);
    return [shares, { denom: BASE_DENOM, amount }];
  },
  unbondingDelegation(args, call) {
    const { state } = call.host;
    const delegator = args.address("delegatorAddress");
    const operator = args.operator("validatorAddress");
    const entries = entriesOf(state, delegator, ENTRY_KIND.unbonding).filter(
      ({ source }) => source === operator,
    );
    const isEmpty = entries.length === 0;
    return [
      {
        delegatorAddress: isEmpty ? "" : accountText(delegator),
        validatorAddress: isEmpty ? "" : operatorText(operator),
        entries: entries.map((entry) => ({
          creationHeight: BigInt(entry.height),
          completionTime: secondsOf(entry.endMs),
          initialBalance: entry.initialAtoken,
          balance: unbondingLeft(new Validators(state).of(entry.source), entry),
          unbondingId: entry.id,
          unbondingOnHoldRefCount: 0n,
        })),
      },
    ];
  },
  validator(args, call) {
    const validator = new Validators(call.host.state).of(args.address("validatorAddress"));
    return [validator.exists ? validatorValue(validator) : NO_VALIDATOR];
  },
  validators(args, call) {
    const status = args.text("status");
    if (!STATUSES.has(status)) throw refusal(`invalid validator status ${status.slice(0, 100)}`);
    const wanted = STATUSES.get(status);
    const all = new Validators(call.host.state).all();
    const found = wanted === undefined ? all : all.filter((one) => one.status === wanted);
    const { items, response } = pageOf(found, args.struct("pageRequest"));
    return [items.map(validatorValue), response];
  },
  redelegation(args, call) {
    const delegator = args.address("delegatorAddress");
    const source = args.operator("srcValidatorAddress");
    const destination = args.operator("dstValidatorAddress");
    const entries = entriesOf(call.host.state, delegator, ENTRY_KIND.redelegation).filter(
      (one) => one.source === source && one.destination === destination,
    );
    return [routeValue(entries)];
  },
  redelegations(args, call) {
    const { state } = call.host;
    const delegator = args.address("delegatorAddress");
    const source = optionalOperator(args, "srcValidatorAddress");
    const destination = optionalOperator(args, "dstValidatorAddress");
    if (delegator === ZERO_ADDRESS && source === undefined) {
      const text =
        "invalid query. Need to specify at least a source validator address or delegator";
      throw messageFailure(SDK_CODE.invalidRequest, `${text} address`);
    }
    if (source !== undefined && delegator === ZERO_ADDRESS) validatorOf(call.context(), source);
    const delegations = new Delegations(state);
    const all =
      delegator === ZERO_ADDRESS && source !== undefined
        ? delegations.entriesFrom(source)
        : delegations.entriesOf(delegator);
    const found = all.filter(
      (one) =>
        one.kind === ENTRY_KIND.redelegation &&
        (source === undefined || one.source === source) &&
        (destination === undefined || one.destination === destination),
    );
    const { items, response } = pageOf(byRoute(found), args.struct("pageRequest"));
    return [
      items.map((entries) => ({
        redelegation: routeValue(entries),
        entries: entries.map((entry) => ({
          redelegationEntry: entryValue(entry),
          balance: tokensOf(new Validators(state).of(entry.destination), entry.destinationShares),
        })),
      })),
      response,
    ];
  },
};

function entriesOf(state: JournaledState, delegator: Address, kind: QueueEntry["kind"]) {
  const own = new Delegations(state).entriesOf(delegator).filter((one) => one.kind === kind);
  return own.toSorted((left, right) => Number(left.id - right.id));
}

/** Entries of the same account and validators together, the oldest first. */
function byRoute(entries: readonly QueueEntry[]): (readonly QueueEntry[])[] {
  const routes = new Map<string, QueueEntry[]>();
  for (const entry of entries.toSorted((left, right) => Number(left.id - right.id))) {
    const name = `${entry.delegator}${entry.source}${entry.destination}`;
    const route = routes.get(name) ?? [];
    routes.set(name, route);
    route.push(entry);
  }
  return [...routes.values()];
}

function optionalOperator(args: Arguments, name: string): Address | undefined {
  return args.text(name) === "" ? undefined : args.operator(name);
}

function routeValue(entries: readonly QueueEntry[]): AbiValue {
  const [first] = entries;
  return {
    delegatorAddress: first === undefined ? "" : accountText(first.delegator),
    validatorSrcAddress: first === undefined ? "" : operatorText(first.source),
    validatorDstAddress: first === undefined ? "" : operatorText(first.destination),
    entries: entries.map(entryValue),
  };
}

function entryValue(entry: QueueEntry): AbiValue {
  return {
    creationHeight: BigInt(entry.height),
    completionTime: secondsOf(entry.endMs),
    initialBalance: entry.initialAtoken,
    sharesDst: entry.destinationShares,
  };
}

function validatorValue(validator: ValidatorRecord): AbiValue {
  const { security_contact: securityContact, ...description } = validator.description;
  return {
    operatorAddress: toChecksumAddress(validator.operator),
    consensusPubkey: Buffer.from(validator.publicKey).toString("base64"),
    jailed: validator.isJailed,
    status: BigInt(validator.status),
    tokens: validator.tokens,
    delegatorShares: validator.shares,
    description: { ...description, securityContact },
    unbondingHeight: BigInt(validator.unbondingHeight),
    unbondingTime: secondsOf(validator.unbondingTimeMs),
    commission: validator.commission.rate,
    minSelfDelegation: validator.minSelfDelegation,
  };
}

function secondsOf(timeMs: number): bigint {
  return BigInt(Math.floor(timeMs / 1_000));
}
