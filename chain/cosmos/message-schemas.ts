/**
 * The messages that Cosmos transactions of this chain may carry, field by field (SDK v0.50 proto
 * files of bank, staking, distribution, gov, slashing and upgrade). What runs them is
 * `node/modules`; a message that no handler runs is decoded and refused there.
 */
import type { MessageSchema, SchemaLookup } from "./field-schema.js";
import { GOVERNANCE_SCHEMAS } from "./governance-schemas.js";
import { coin, coins, field, MAX_ITEMS, message } from "./schema-parts.js";

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

/** Keys of validators: `MsgCreateValidator.pubkey`. */
const ED25519_KEY: MessageSchema = {
  name: "cosmos.crypto.ed25519.PubKey",
  amino: "tendermint/PubKeyEd25519",
  fields: [field(1, "key", "bytes")],
};

const DELEGATION = [field(1, "delegator_address"), field(2, "validator_address")];
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
  message("cosmos.slashing.v1beta1.MsgUnjail", "cosmos-sdk/MsgUnjail", "validator_addr", [
    field(1, "validator_addr", "string", { keep: true, aminoName: "address" }),
  ]),
  ...GOVERNANCE_SCHEMAS,
  ED25519_KEY,
];

const BY_TYPE_URL: ReadonlyMap<string, MessageSchema> = new Map(
  SCHEMAS.map((schema) => [`/${schema.name}`, schema]),
);

/** The schema of a type URL that this chain knows. */
export const schemaOf: SchemaLookup = (typeUrl) => BY_TYPE_URL.get(typeUrl);

/** All messages that are described: those of transactions, and what is in them. */
export function allSchemas(): readonly MessageSchema[] {
  return SCHEMAS;
}
