/**
 * Messages of governance, field by field (SDK v0.50 proto files of gov, upgrade, params): those
 * that persons send, and those that a proposal has the chain execute.
 */
import type { FieldSchema, MessageSchema } from "./field-schema.js";
import { coins, field, message } from "./schema-parts.js";

const VOTE_OPTIONS = [
  "VOTE_OPTION_UNSPECIFIED",
  "VOTE_OPTION_YES",
  "VOTE_OPTION_ABSTAIN",
  "VOTE_OPTION_NO",
  "VOTE_OPTION_NO_WITH_VETO",
] as const;

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

/** Messages that a proposal of gov v1beta1 or v1 may have, at most. */
export const MAX_PROPOSAL_MESSAGES = 16;

/** Parameters that one proposal of v1beta1 may change, at most. */
const MAX_CHANGES = 32;

const PARAM_CHANGE: MessageSchema = {
  name: "cosmos.params.v1beta1.ParamChange",
  fields: [field(1, "subspace"), field(2, "key"), field(3, "value")],
};

/** `Content` of v1beta1: what a proposal is about, before proposals had messages. */
function content(module: string, name: string, fields: readonly FieldSchema[] = []): MessageSchema {
  const texts = [field(1, "title"), field(2, "description")];
  return {
    name: `cosmos.${module}.v1beta1.${name}`,
    amino: `cosmos-sdk/${name}`,
    fields: [...texts, ...fields],
  };
}

const LEGACY_CONTENTS: readonly MessageSchema[] = [
  content("gov", "TextProposal"),
  content("distribution", "CommunityPoolSpendProposal", [
    field(3, "recipient"),
    coins(4, "amount"),
  ]),
  content("upgrade", "SoftwareUpgradeProposal", [
    field(3, "plan", "message", { schema: PLAN, keep: true }),
  ]),
  content("upgrade", "CancelSoftwareUpgradeProposal"),
  content("params", "ParameterChangeProposal", [
    field(3, "changes", "message", { schema: PARAM_CHANGE, most: MAX_CHANGES, keep: true }),
  ]),
];

/** `MsgUpdateParams` of a module. */
function updateParams(module: string, amino: string, fields: readonly FieldSchema[]) {
  const version = module === "gov" ? "v1" : "v1beta1";
  const schema = { name: `cosmos.${module}.${version}.Params`, fields };
  return message(`cosmos.${module}.${version}.MsgUpdateParams`, amino, "authority", [
    field(1, "authority"),
    field(2, "params", "message", { schema, keep: true }),
  ]);
}

const kept = { keep: true };

const SEND_ENABLED: MessageSchema = {
  name: "cosmos.bank.v1beta1.SendEnabled",
  fields: [field(1, "denom"), field(2, "enabled", "bool")],
};

const PARAM_UPDATES: readonly MessageSchema[] = [
  updateParams("staking", "cosmos-sdk/x/staking/MsgUpdateParams", [
    field(1, "unbonding_time", "duration", kept),
    field(2, "max_validators", "uint32"),
    field(3, "max_entries", "uint32"),
    field(4, "historical_entries", "uint32"),
    field(5, "bond_denom"),
    field(6, "min_commission_rate", "decimal", kept),
  ]),
  updateParams("distribution", "cosmos-sdk/distribution/MsgUpdateParams", [
    field(1, "community_tax", "decimal", kept),
    field(2, "base_proposer_reward", "decimal", kept),
    field(3, "bonus_proposer_reward", "decimal", kept),
    field(4, "withdraw_addr_enabled", "bool"),
  ]),
  // Fractions are bytes here, with the same digits in them.
  updateParams("slashing", "cosmos-sdk/x/slashing/MsgUpdateParams", [
    field(1, "signed_blocks_window", "int64"),
    field(2, "min_signed_per_window", "decimal", kept),
    field(3, "downtime_jail_duration", "duration", kept),
    field(4, "slash_fraction_double_sign", "decimal", kept),
    field(5, "slash_fraction_downtime", "decimal", kept),
  ]),
  updateParams("gov", "cosmos-sdk/x/gov/v1/MsgUpdateParams", [
    coins(1, "min_deposit"),
    field(2, "max_deposit_period", "duration"),
    field(3, "voting_period", "duration"),
    field(4, "quorum"),
    field(5, "threshold"),
    field(6, "veto_threshold"),
    field(7, "min_initial_deposit_ratio"),
    field(8, "proposal_cancel_ratio"),
    field(9, "proposal_cancel_dest"),
    field(10, "expedited_voting_period", "duration"),
    field(11, "expedited_threshold"),
    coins(12, "expedited_min_deposit"),
    field(13, "burn_vote_quorum", "bool"),
    field(14, "burn_proposal_deposit_prevote", "bool"),
    field(15, "burn_vote_veto", "bool"),
    field(16, "min_deposit_ratio"),
  ]),
  // What these have is fixed by the rules of the chain; they are read to be refused with a reason.
  updateParams("mint", "cosmos-sdk/x/mint/MsgUpdateParams", [
    field(1, "mint_denom"),
    field(2, "inflation_rate_change", "decimal", kept),
    field(3, "inflation_max", "decimal", kept),
    field(4, "inflation_min", "decimal", kept),
    field(5, "goal_bonded", "decimal", kept),
    field(6, "blocks_per_year", "uint64"),
  ]),
  updateParams("bank", "cosmos-sdk/x/bank/MsgUpdateParams", [
    field(1, "send_enabled", "message", { schema: SEND_ENABLED, most: MAX_CHANGES }),
    field(2, "default_send_enabled", "bool"),
  ]),
  updateParams("auth", "cosmos-sdk/x/auth/MsgUpdateParams", [
    field(1, "max_memo_characters", "uint64"),
    field(2, "tx_sig_limit", "uint64"),
    field(3, "tx_size_cost_per_byte", "uint64"),
    field(4, "sig_verify_cost_ed25519", "uint64"),
    field(5, "sig_verify_cost_secp256k1", "uint64"),
  ]),
];

/** All of them. */
export const GOVERNANCE_SCHEMAS: readonly MessageSchema[] = [
  ...govMessages("v1"),
  ...govMessages("v1beta1"),
  message("cosmos.gov.v1.MsgSubmitProposal", "cosmos-sdk/v1/MsgSubmitProposal", "proposer", [
    field(1, "messages", "any", { most: MAX_PROPOSAL_MESSAGES }),
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
  message("cosmos.gov.v1beta1.MsgSubmitProposal", "cosmos-sdk/MsgSubmitProposal", "proposer", [
    field(1, "content", "any"),
    coins(2, "initial_deposit"),
    field(3, "proposer"),
  ]),
  message("cosmos.gov.v1.MsgCancelProposal", "cosmos-sdk/v1/MsgCancelProposal", "proposer", [
    field(1, "proposal_id", "uint64", { keep: true }),
    field(2, "proposer"),
  ]),
  message("cosmos.gov.v1.MsgExecLegacyContent", "cosmos-sdk/v1/MsgExecLegacyContent", "authority", [
    field(1, "content", "any"),
    field(2, "authority"),
  ]),
  message(
    "cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
    "cosmos-sdk/distr/MsgCommunityPoolSpend",
    "authority",
    [field(1, "authority"), field(2, "recipient"), coins(3, "amount")],
  ),
  ...PARAM_UPDATES,
  ...LEGACY_CONTENTS,
];
