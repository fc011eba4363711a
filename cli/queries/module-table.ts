/** `causeway query` of the modules: which command asks which method. */
import type { QueryCommand } from "./query-command.js";

const STAKING = "/cosmos.staking.v1beta1.Query";
const DISTRIBUTION = "/cosmos.distribution.v1beta1.Query";
const SLASHING = "/cosmos.slashing.v1beta1.Query";
const GOV = "/cosmos.gov.v1.Query";
const UPGRADE = "/cosmos.upgrade.v1beta1.Query";
const EVIDENCE = "/cosmos.evidence.v1beta1.Query";
const PARAMS = "/cosmos.params.v1beta1.Query";

const PAIR = ["delegator_addr", "validator_addr"] as const;

const STAKING_QUERIES: readonly QueryCommand[] = [
  {
    words: "staking validators",
    path: `${STAKING}/Validators`,
    description: "all validators, or those of one --status",
    fields: [["status", "status"]],
    isPaged: true,
  },
  {
    words: "staking validator",
    path: `${STAKING}/Validator`,
    description: "one validator",
    arguments: ["validator_addr"],
  },
  {
    words: "staking delegation",
    path: `${STAKING}/Delegation`,
    description: "what an account has delegated to a validator",
    arguments: PAIR,
  },
  {
    words: "staking delegations",
    path: `${STAKING}/DelegatorDelegations`,
    description: "all delegations of an account",
    arguments: ["delegator_addr"],
    isPaged: true,
  },
  {
    words: "staking delegations-to",
    path: `${STAKING}/ValidatorDelegations`,
    description: "all delegations to a validator",
    arguments: ["validator_addr"],
    isPaged: true,
  },
  {
    words: "staking unbonding-delegation",
    path: `${STAKING}/UnbondingDelegation`,
    description: "what an account takes back from a validator",
    arguments: PAIR,
  },
  {
    words: "staking unbonding-delegations",
    path: `${STAKING}/DelegatorUnbondingDelegations`,
    description: "all that an account takes back",
    arguments: ["delegator_addr"],
    isPaged: true,
  },
  {
    words: "staking unbonding-delegations-from",
    path: `${STAKING}/ValidatorUnbondingDelegations`,
    description: "all that is taken back from a validator",
    arguments: ["validator_addr"],
    isPaged: true,
  },
  {
    words: "staking redelegation",
    path: `${STAKING}/Redelegations`,
    description: "what an account moved from one validator to another",
    arguments: ["delegator_addr", "src_validator_addr", "dst_validator_addr"],
    isPaged: true,
  },
  {
    words: "staking redelegations",
    path: `${STAKING}/Redelegations`,
    description: "all that an account moved between validators",
    arguments: ["delegator_addr"],
    isPaged: true,
  },
  {
    words: "staking redelegations-from",
    path: `${STAKING}/Redelegations`,
    description: "all that was moved away from a validator",
    arguments: ["src_validator_addr"],
    isPaged: true,
  },
  {
    words: "staking delegator-validators",
    path: `${STAKING}/DelegatorValidators`,
    description: "validators that an account delegates to",
    arguments: ["delegator_addr"],
    isPaged: true,
  },
  {
    words: "staking delegator-validator",
    path: `${STAKING}/DelegatorValidator`,
    description: "a validator that an account delegates to",
    arguments: PAIR,
  },
  {
    words: "staking historical-info",
    path: `${STAKING}/HistoricalInfo`,
    description: "header and bonded validators of a height",
    arguments: ["height"],
  },
  { words: "staking pool", path: `${STAKING}/Pool`, description: "coins of all stake" },
  { words: "staking params", path: `${STAKING}/Params`, description: "parameters of staking" },
];

const DISTRIBUTION_QUERIES: readonly QueryCommand[] = [
  {
    words: "distribution rewards",
    path: `${DISTRIBUTION}/DelegationTotalRewards`,
    description: "rewards of an account, of all validators or of one",
    arguments: ["delegator_address", "[validator_address]"],
    instead: ["validator_address", `${DISTRIBUTION}/DelegationRewards`],
  },
  {
    words: "distribution rewards-by-validator",
    path: `${DISTRIBUTION}/DelegationRewards`,
    description: "rewards of an account with one validator",
    arguments: ["delegator_address", "validator_address"],
  },
  {
    words: "distribution validator-distribution-info",
    path: `${DISTRIBUTION}/ValidatorDistributionInfo`,
    description: "commission and own rewards of a validator",
    arguments: ["validator_address"],
  },
  {
    words: "distribution validator-outstanding-rewards",
    path: `${DISTRIBUTION}/ValidatorOutstandingRewards`,
    description: "all that can be claimed of a validator",
    arguments: ["validator_address"],
  },
  {
    words: "distribution commission",
    path: `${DISTRIBUTION}/ValidatorCommission`,
    description: "commission of a validator",
    arguments: ["validator_address"],
  },
  {
    words: "distribution slashes",
    path: `${DISTRIBUTION}/ValidatorSlashes`,
    description: "slashes of a validator between two heights",
    arguments: ["validator_address", "[starting_height]", "[ending_height]"],
    isPaged: true,
  },
  {
    words: "distribution delegator-validators",
    path: `${DISTRIBUTION}/DelegatorValidators`,
    description: "validators that an account delegates to",
    arguments: ["delegator_address"],
  },
  {
    words: "distribution delegator-withdraw-address",
    path: `${DISTRIBUTION}/DelegatorWithdrawAddress`,
    description: "where rewards of an account go",
    arguments: ["delegator_address"],
  },
  {
    words: "distribution community-pool",
    path: `${DISTRIBUTION}/CommunityPool`,
    description: "what governance may spend",
  },
  {
    words: "distribution params",
    path: `${DISTRIBUTION}/Params`,
    description: "parameters of distribution",
  },
];

const GOV_QUERIES: readonly QueryCommand[] = [
  {
    words: "gov proposals",
    path: `${GOV}/Proposals`,
    description: "all proposals, or those of a state, voter or depositor",
    fields: [
      ["status", "proposal_status", "proposal-status"],
      ["voter", "voter"],
      ["depositor", "depositor"],
    ],
    isPaged: true,
  },
  {
    words: "gov proposal",
    path: `${GOV}/Proposal`,
    description: "one proposal",
    arguments: ["proposal_id"],
  },
  {
    words: "gov proposer",
    path: `${GOV}/Proposal`,
    description: "who proposed it",
    arguments: ["proposal_id"],
    shown: [
      ["proposal_id", "proposal", "id"],
      ["proposer", "proposal", "proposer"],
    ],
  },
  {
    words: "gov vote",
    path: `${GOV}/Vote`,
    description: "how an account votes",
    arguments: ["proposal_id", "voter"],
  },
  {
    words: "gov votes",
    path: `${GOV}/Votes`,
    description: "all votes on a proposal",
    arguments: ["proposal_id"],
    isPaged: true,
  },
  {
    words: "gov deposit",
    path: `${GOV}/Deposit`,
    description: "what an account has deposited",
    arguments: ["proposal_id", "depositor"],
  },
  {
    words: "gov deposits",
    path: `${GOV}/Deposits`,
    description: "all deposits of a proposal",
    arguments: ["proposal_id"],
    isPaged: true,
  },
  {
    words: "gov tally",
    path: `${GOV}/TallyResult`,
    description: "the votes of a proposal, counted now or at its end",
    arguments: ["proposal_id"],
  },
  {
    words: "gov params",
    path: `${GOV}/Params`,
    description: "parameters of governance",
  },
  {
    words: "gov param",
    path: `${GOV}/Params`,
    description: "parameters of one kind: voting, tallying or deposit",
    arguments: ["params_type"],
  },
  {
    words: "gov constitution",
    path: `${GOV}/Constitution`,
    description: "the constitution",
  },
];

/** The commands. */
export const MODULE_QUERIES: readonly QueryCommand[] = [
  ...STAKING_QUERIES,
  ...DISTRIBUTION_QUERIES,
  {
    words: "slashing signing-info",
    path: `${SLASHING}/SigningInfo`,
    description:
      "which blocks a validator missed, by its consensus key as JSON or that key's address",
    arguments: ["cons_address"],
  },
  {
    words: "slashing signing-infos",
    path: `${SLASHING}/SigningInfos`,
    description: "which blocks all validators missed",
    isPaged: true,
  },
  { words: "slashing params", path: `${SLASHING}/Params`, description: "parameters of slashing" },
  ...GOV_QUERIES,
  {
    words: "upgrade plan",
    path: `${UPGRADE}/CurrentPlan`,
    description: "the upgrade that is planned",
  },
  {
    words: "upgrade applied",
    path: `${UPGRADE}/AppliedPlan`,
    description: "the height at which an upgrade was made",
    arguments: ["name"],
  },
  {
    words: "upgrade module_versions",
    aliases: ["module-versions"],
    path: `${UPGRADE}/ModuleVersions`,
    description: "versions of the modules",
    arguments: ["[module_name]"],
  },
  {
    words: "upgrade authority",
    path: `${UPGRADE}/Authority`,
    description: "who may plan an upgrade",
  },
  {
    words: "evidence",
    path: `${EVIDENCE}/AllEvidence`,
    description: "who signed two blocks of one height, or one piece of evidence by its hash",
    arguments: ["[hash]"],
    isPaged: true,
    instead: ["hash", `${EVIDENCE}/Evidence`],
  },
  {
    words: "evidence list",
    path: `${EVIDENCE}/AllEvidence`,
    description: "who signed two blocks of one height",
    isPaged: true,
  },
  {
    words: "evidence evidence",
    path: `${EVIDENCE}/Evidence`,
    description: "one piece of evidence",
    arguments: ["hash"],
  },
  {
    words: "params subspace",
    path: `${PARAMS}/Params`,
    description: "a parameter by the names of older releases",
    arguments: ["subspace", "key"],
  },
  {
    words: "params subspaces",
    path: `${PARAMS}/Subspaces`,
    description: "names of such parameters",
  },
];
