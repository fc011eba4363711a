/**
 * The messages that Cosmos transactions of this chain may carry, field by field (SDK v0.50 proto
 * files of bank, staking, distribution, gov, slashing and upgrade). What runs them is
 * `node/modules`; a message that no handler runs is decoded and refused there.
 */
import type { FieldSchema, MessageSchema, SchemaLookup } from "./field-schema.js";

/** Elements of lists in messages: a bound on what one transaction asks for. */
const MAX_ITEMS = 1_000;

const VOTE_OPTIONS = [
  "VOTE_OPTION_UNSPECIFIED",
  "VOTE_OPTION_YES",
  "VOTE_OPTION_ABSTAIN",
  "VOTE_OPTION_NO",
  "VOTE_OPTION_NO_WITH_VETO",
] as const;

type Options = Omit<FieldSchema, "number" | "name" | "kind">;

function field(
  number: number,
  name: string,
  kind: FieldSchema["kind"] = "string",
  options: Options = {},
): FieldSchema {
  return { number, name, kind, ...options };
}

/** `cosmos.base.v1beta1.Coin`. */
export const COIN: MessageSchema = {
  name: "cosmos.base.v1beta1.Coin",
  fields: [field(1, "denom"), field(2, "amount", "string", { keep: true })],
};

const coin = (number: number, name: string) =>
  field(number, name, "message", { schema: COIN, keep: true });
const coins = (number: number, name: string) =>
  field(number, name, "message", { schema: COIN, most: MAX_ITEMS, keep: true });

const INPUT: MessageSchema = {
  name: "cosmos.bank.v1beta1.Input",
  fields: [field(1, "address"), coins(2, "coins")],
};

const DESCRIPTION: MessageSchema = {
  name: "cosmos.staking.v1beta1.Description",
  fields: ["moniker", "identity", "website", "security_contact", "details"].map((name, index) =>
    field(index + 1, name),
  ),
};

const COMMISSION_RATES: MessageSchema = {
  name: "cosmos.staking.v1beta1.CommissionRates",
  fields: ["rate", "max_rate", "max_change_rate"].map((name, index) =>
    field(index + 1, name, "decimal", { keep: true }),
  ),
};

const WEIGHTED_V1BETA1: MessageSchema = {
  name: "cosmos.gov.v1beta1.WeightedVoteOption",
  fields: [field(1, "option", "enum", { names: VOTE_OPTIONS }), field(2, "weight", "decimal")],
};

const WEIGHTED_V1: MessageSchema = {
  name: "cosmos.gov.v1.WeightedVoteOption",
  fields: [field(1, "option", "enum", { names: VOTE_OPTIONS }), field(2, "weight")],
};

const PLAN: MessageSchema = {
  name: "cosmos.upgrade.v1beta1.Plan",
  fields: [
    field(1, "name"),
    field(2, "time", "timestamp", { keep: true }),
    field(3, "height", "int64"),
    field(4, "info"),
  ],
};

/** Keys of validators: `MsgCreateValidator.pubkey`. */
const ED25519_KEY: MessageSchema = {
  name: "cosmos.crypto.ed25519.PubKey",
  amino: "tendermint/PubKeyEd25519",
  fields: [field(1, "key", "bytes")],
};

function message(
  name: string,
  amino: string,
  signer: string,
  fields: readonly FieldSchema[],
): MessageSchema {
  return { name, amino, signer, fields };
}

const DELEGATION = [field(1, "delegator_address"), field(2, "validator_address")];
const VOTE = [field(1, "proposal_id", "uint64", { keep: true }), field(2, "voter")];

function govMessages(version: "v1" | "v1beta1"): MessageSchema[] {
  const prefix = version === "v1" ? "cosmos-sdk/v1/" : "cosmos-sdk/";
  const option = field(3, "option", "enum", { names: VOTE_OPTIONS });
  const schema = version === "v1" ? WEIGHTED_V1 : WEIGHTED_V1BETA1;
  const options = field(3, "options", "message", { schema, most: 8, keep: true });
  const metadata = version === "v1" ? [field(4, "metadata")] : [];
  return [
    message(`cosmos.gov.${version}.MsgVote`, `${prefix}MsgVote`, "voter", [
      ...(version === "v1"
        ? [field(1, "proposal_id", "uint64", { keep: true })]
        : VOTE.slice(0, 1)),
      field(2, "voter"),
      option,
      ...metadata,
    ]),
    message(`cosmos.gov.${version}.MsgVoteWeighted`, `${prefix}MsgVoteWeighted`, "voter", [
      ...VOTE,
      options,
      ...metadata,
    ]),
    message(`cosmos.gov.${version}.MsgDeposit`, `${prefix}MsgDeposit`, "depositor", [
      field(1, "proposal_id", "uint64", { keep: true }),
      field(2, "depositor"),
      coins(3, "amount"),
    ]),
  ];
}

const SCHEMAS: readonly MessageSchema[] = [
  message("cosmos.bank.v1beta1.MsgSend", "cosmos-sdk/MsgSend", "from_address", [
    field(1, "from_address"),
    field(2, "to_address"),
    coins(3, "amount"),
  ]),
  message("cosmos.bank.v1beta1.MsgMultiSend", "cosmos-sdk/MsgMultiSend", "inputs", [
    field(1, "inputs", "message", { schema: INPUT, most: MAX_ITEMS, keep: true }),
    field(2, "outputs", "message", {
      schema: { ...INPUT, name: "cosmos.bank.v1beta1.Output" },
      most: MAX_ITEMS,
      keep: true,
    }),
  ]),
  message(
    "cosmos.staking.v1beta1.MsgCreateValidator",
    "cosmos-sdk/MsgCreateValidator",
    "validator_address",
    [
      field(1, "description", "message", { schema: DESCRIPTION, keep: true }),
      field(2, "commission", "message", { schema: COMMISSION_RATES, keep: true }),
      field(3, "min_self_delegation"),
      field(4, "delegator_address"),
      field(5, "validator_address"),
      field(6, "pubkey", "any"),
      coin(7, "value"),
    ],
  ),
  message(
    "cosmos.staking.v1beta1.MsgEditValidator",
    "cosmos-sdk/MsgEditValidator",
    "validator_address",
    [
      field(1, "description", "message", { schema: DESCRIPTION, keep: true }),
      field(2, "validator_address"),
      field(3, "commission_rate", "decimal"),
      field(4, "min_self_delegation"),
    ],
  ),
  message("cosmos.staking.v1beta1.MsgDelegate", "cosmos-sdk/MsgDelegate", "delegator_address", [
    ...DELEGATION,
    coin(3, "amount"),
  ]),
  message("cosmos.staking.v1beta1.MsgUndelegate", "cosmos-sdk/MsgUndelegate", "delegator_address", [
    ...DELEGATION,
    coin(3, "amount"),
  ]),
  message(
    "cosmos.staking.v1beta1.MsgBeginRedelegate",
    "cosmos-sdk/MsgBeginRedelegate",
    "delegator_address",
    [
      field(1, "delegator_address"),
      field(2, "validator_src_address"),
      field(3, "validator_dst_address"),
      coin(4, "amount"),
    ],
  ),
  message(
    "cosmos.staking.v1beta1.MsgCancelUnbondingDelegation",
    "cosmos-sdk/MsgCancelUnbondingDelegation",
    "delegator_address",
    [...DELEGATION, coin(3, "amount"), field(4, "creation_height", "int64")],
  ),
  message(
    "cosmos.distribution.v1beta1.MsgSetWithdrawAddress",
    "cosmos-sdk/MsgModifyWithdrawAddress",
    "delegator_address",
    [field(1, "delegator_address"), field(2, "withdraw_address")],
  ),
  message(
    "cosmos.distribution.v1beta1.MsgWithdrawDelegatorReward",
    "cosmos-sdk/MsgWithdrawDelegationReward",
    "delegator_address",
    DELEGATION,
  ),
  message(
    "cosmos.distribution.v1beta1.MsgWithdrawValidatorCommission",
    "cosmos-sdk/MsgWithdrawValCommission",
    "validator_address",
    [field(1, "validator_address")],
  ),
  message(
    "cosmos.distribution.v1beta1.MsgFundCommunityPool",
    "cosmos-sdk/MsgFundCommunityPool",
    "depositor",
    [coins(1, "amount"), field(2, "depositor")],
  ),
  message(
    "cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
    "cosmos-sdk/distr/MsgCommunityPoolSpend",
    "authority",
    [field(1, "authority"), field(2, "recipient"), coins(3, "amount")],
  ),
  message("cosmos.slashing.v1beta1.MsgUnjail", "cosmos-sdk/MsgUnjail", "validator_addr", [
    field(1, "validator_addr", "string", { keep: true, aminoName: "address" }),
  ]),
  ...govMessages("v1"),
  ...govMessages("v1beta1"),
  message("cosmos.gov.v1.MsgSubmitProposal", "cosmos-sdk/v1/MsgSubmitProposal", "proposer", [
    field(1, "messages", "any", { most: 16 }),
    coins(2, "initial_deposit"),
    field(3, "proposer"),
    field(4, "metadata"),
    field(5, "title"),
    field(6, "summary"),
    field(7, "expedited", "bool"),
  ]),
  message(
    "cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
    "cosmos-sdk/MsgSoftwareUpgrade",
    "authority",
    [field(1, "authority"), field(2, "plan", "message", { schema: PLAN, keep: true })],
  ),
  message("cosmos.upgrade.v1beta1.MsgCancelUpgrade", "cosmos-sdk/MsgCancelUpgrade", "authority", [
    field(1, "authority"),
  ]),
  ED25519_KEY,
];

const BY_TYPE_URL: ReadonlyMap<string, MessageSchema> = new Map(
  SCHEMAS.map((schema) => [`/${schema.name}`, schema]),
);

/** The schema of a type URL that this chain knows. */
export const schemaOf: SchemaLookup = (typeUrl) => BY_TYPE_URL.get(typeUrl);

/** Type URLs of all messages that a transaction may carry. */
export function messageTypeUrls(): readonly string[] {
  return SCHEMAS.filter(({ signer }) => signer !== undefined).map(({ name }) => `/${name}`);
}
