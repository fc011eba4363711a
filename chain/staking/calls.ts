/**
 * Calls of the chain's own contracts for stake, rewards and votes, as calldata. An account acts for
 * itself alone, so the account in the arguments is always the sender.
 */
import { type Address, operatorText, parseBech32, VALIDATOR_PREFIX } from "../address.js";
import { ChainError } from "../errors.js";
import { abiParameter } from "../evm/abi/abi-contract.js";
import { selectorOf, signatureHash, signatureOf } from "../evm/abi/abi-types.js";
import { AbiError, type AbiValue, decodeAbi, encodeAbi } from "../evm/abi/abi-values.js";
import { bytesToHex, type Hex, hexToBytes } from "../hex.js";
import type { Atoken } from "../units.js";

/** Contracts of the chain that accounts act through. */
export const STAKING_CONTRACTS = {
  staking: "0x0000000000000000000000000000000000000800" as Address,
  distribution: "0x0000000000000000000000000000000000000801" as Address,
  gov: "0x0000000000000000000000000000000000000805" as Address,
} as const;

/** What a vote says, in the order of `cosmos.gov.v1.VoteOption` from 1 on. */
export const VOTE_NAMES = ["yes", "abstain", "no", "no_with_veto"] as const;

/** One of `VOTE_NAMES`. */
export type VoteName = (typeof VOTE_NAMES)[number];

/** What an account does with its stake, rewards and votes. Validators are named by their operators. */
export type StakingCall =
  | {
      readonly kind: "delegate" | "undelegate";
      readonly validator: Address;
      readonly amountAtoken: Atoken;
    }
  | {
      readonly kind: "redelegate";
      readonly source: Address;
      readonly destination: Address;
      readonly amountAtoken: Atoken;
    }
  | {
      readonly kind: "cancelUnbonding";
      readonly validator: Address;
      readonly amountAtoken: Atoken;
      /** Height at which it began to leave. */
      readonly creationHeight: bigint;
    }
  | { readonly kind: "withdrawRewards"; readonly validator: Address }
  /** The sender is the operator. */
  | { readonly kind: "withdrawCommission" }
  | { readonly kind: "vote"; readonly proposalId: bigint; readonly option: VoteName };

/** A call of a contract without coins. */
export interface ContractCall {
  readonly to: Address;
  readonly data: Hex;
}

type Values = { readonly [name: string]: AbiValue };

interface CallForm {
  readonly to: Address;
  readonly name: string;
  readonly parameters: readonly (readonly [name: string, type: string])[];
  /** Throws for values that no call has. */
  readonly read: (values: Values) => StakingCall;
}

const SENDER = ["sender", "address"] as const;
const VALIDATOR = ["validator", "string"] as const;
const AMOUNT = ["amount", "uint256"] as const;

const FORMS: Readonly<Record<StakingCall["kind"], CallForm>> = {
  delegate: stakeForm("delegate"),
  undelegate: stakeForm("undelegate"),
  redelegate: {
    to: STAKING_CONTRACTS.staking,
    name: "redelegate",
    parameters: [SENDER, ["source", "string"], ["destination", "string"], AMOUNT],
    read: (values) => ({
      kind: "redelegate",
      source: operatorIn(values, "source"),
      destination: operatorIn(values, "destination"),
      amountAtoken: numberIn(values, "amount"),
    }),
  },
  cancelUnbonding: {
    to: STAKING_CONTRACTS.staking,
    name: "cancelUnbondingDelegation",
    parameters: [SENDER, VALIDATOR, AMOUNT, ["creationHeight", "uint256"]],
    read: (values) => ({
      kind: "cancelUnbonding",
      validator: operatorIn(values, "validator"),
      amountAtoken: numberIn(values, "amount"),
      creationHeight: numberIn(values, "creationHeight"),
    }),
  },
  withdrawRewards: {
    to: STAKING_CONTRACTS.distribution,
    name: "withdrawDelegatorRewards",
    parameters: [SENDER, VALIDATOR],
    read: (values) => ({ kind: "withdrawRewards", validator: operatorIn(values, "validator") }),
  },
  withdrawCommission: {
    to: STAKING_CONTRACTS.distribution,
    name: "withdrawValidatorCommission",
    parameters: [VALIDATOR],
    read: () => ({ kind: "withdrawCommission" }),
  },
  vote: {
    to: STAKING_CONTRACTS.gov,
    name: "vote",
    parameters: [SENDER, ["proposalId", "uint64"], ["option", "uint8"], ["metadata", "string"]],
    read: (values) => {
      const option = VOTE_NAMES[Number(numberIn(values, "option")) - 1];
      if (option === undefined) throw new RangeError("no such option");
      return { kind: "vote", proposalId: numberIn(values, "proposalId"), option };
    },
  },
};

function stakeForm(kind: "delegate" | "undelegate"): CallForm {
  return {
    to: STAKING_CONTRACTS.staking,
    name: kind,
    parameters: [SENDER, VALIDATOR, AMOUNT],
    read: (values) => ({
      kind,
      validator: operatorIn(values, "validator"),
      amountAtoken: numberIn(values, "amount"),
    }),
  };
}

const KINDS = Object.keys(FORMS) as readonly StakingCall["kind"][];

const ENCODED = new Map(
  Object.values(FORMS).map((form) => {
    const parameters = form.parameters.map(([name, type]) => abiParameter({ name, type }));
    const selector = selectorOf(signatureHash(signatureOf(form.name, parameters)));
    return [form, { parameters, selector }];
  }),
);

const TEXTS = "(string,string,string,string,string)";
const COINS = "(string,uint256)[]";

/** All other functions of these contracts that change something. */
const OTHER_CHANGES: readonly (readonly [to: Address, signatures: readonly string[]])[] = [
  [
    STAKING_CONTRACTS.staking,
    [
      `createValidator(${TEXTS},(uint256,uint256,uint256),uint256,address,string,uint256)`,
      `editValidator(${TEXTS},address,int256,int256)`,
    ],
  ],
  [
    STAKING_CONTRACTS.distribution,
    [
      "claimRewards(address,uint32)",
      "setWithdrawAddress(address,string)",
      `fundCommunityPool(address,${COINS})`,
      `depositValidatorRewardsPool(address,string,${COINS})`,
    ],
  ],
  [
    STAKING_CONTRACTS.gov,
    [
      `submitProposal(address,bytes,${COINS})`,
      "cancelProposal(address,uint64)",
      `deposit(address,uint64,${COINS})`,
      "voteWeighted(address,uint64,(uint8,string)[],string)",
    ],
  ],
];

/** Contract and selector to the function's name. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map(
  OTHER_CHANGES.flatMap(([to, signatures]) =>
    signatures.map((signature) => {
      const selector = selectorOf(signatureHash(signature));
      return [to + selector, signature.slice(0, signature.indexOf("("))];
    }),
  ),
);

/** The call of the contract that an account makes. */
export function encodeStakingCall(sender: Address, call: StakingCall): ContractCall {
  const form = FORMS[call.kind];
  const { parameters, selector } = encodedForm(form);
  const values = valuesOf(sender, call);
  const bytes = encodeAbi(
    parameters,
    parameters.map(({ name }) => values[name] ?? ""),
  );
  return { to: form.to, data: `${selector}${bytesToHex(bytes).slice(2)}` };
}

/**
 * Which of these functions a call is of, however its arguments are written; undefined for other functions and
 * other contracts.
 */
export function stakingKindOf({ to, data }: ContractCall): StakingCall["kind"] | undefined {
  const selector = data.slice(0, 10);
  return KINDS.find((kind) => {
    const form = FORMS[kind];
    return form.to === to && encodedForm(form).selector === selector;
  });
}

/**
 * The name of a function that changes stake, rewards or votes and is none of these, however its arguments are
 * written; undefined for reads and for other contracts.
 */
export function otherStakingChangeOf({ to, data }: ContractCall): string | undefined {
  return OTHER_NAMES.get(to + data.slice(0, 10));
}

/**
 * What a call without coins does; undefined for all that `encodeStakingCall` would write otherwise:
 * other functions, the account of somebody else, dirty or additional bytes, a vote with metadata.
 */
export function decodeStakingCall(
  sender: Address,
  { to, data }: ContractCall,
): StakingCall | undefined {
  const kind = stakingKindOf({ to, data });
  if (kind === undefined) return undefined;
  const form = FORMS[kind];
  try {
    const bytes = hexToBytes(`0x${data.slice(10)}`);
    const call = form.read(decodeAbi(encodedForm(form).parameters, bytes));
    return encodeStakingCall(sender, call).data === data ? call : undefined;
  } catch (error) {
    const isOther =
      error instanceof AbiError || error instanceof ChainError || error instanceof RangeError;
    if (isOther) return undefined;
    throw error;
  }
}

function encodedForm(form: CallForm) {
  const found = ENCODED.get(form);
  if (found === undefined) throw new TypeError("a call has no form");
  return found;
}

function valuesOf(sender: Address, call: StakingCall): Values {
  switch (call.kind) {
    case "redelegate": {
      const { source, destination, amountAtoken: amount } = call;
      return {
        sender,
        source: operatorText(source),
        destination: operatorText(destination),
        amount,
      };
    }
    case "cancelUnbonding": {
      const { validator, amountAtoken: amount, creationHeight } = call;
      return { sender, validator: operatorText(validator), amount, creationHeight };
    }
    case "withdrawRewards":
      return { sender, validator: operatorText(call.validator) };
    case "withdrawCommission":
      return { validator: operatorText(sender) };
    case "vote": {
      const option = BigInt(VOTE_NAMES.indexOf(call.option) + 1);
      return { sender, proposalId: call.proposalId, option, metadata: "" };
    }
    default:
      return { sender, validator: operatorText(call.validator), amount: call.amountAtoken };
  }
}

function operatorIn(values: Values, name: string): Address {
  const text = values[name];
  return parseBech32(typeof text === "string" ? text : "", VALIDATOR_PREFIX);
}

function numberIn(values: Values, name: string): bigint {
  const number = values[name];
  if (typeof number !== "bigint") throw new RangeError(`${name} is no number`);
  return number;
}
