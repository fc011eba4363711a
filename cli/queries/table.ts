/**
 * `causeway query`: which command asks which method, with the names of the SDK's command line.
 * Arguments are fields of the request, in order; flags of lists are those of every SDK command.
 */
import { MODULE_QUERIES } from "./module-table.js";
import type { QueryCommand } from "./query-command.js";

const AUTH = "/cosmos.auth.v1beta1.Query";
const BANK = "/cosmos.bank.v1beta1.Query";
const MINT = "/cosmos.mint.v1beta1.Query";
const EVM = "/cosmos.evm.vm.v1.Query";
const FEE_MARKET = "/cosmos.evm.feemarket.v1.Query";
const TENDERMINT = "/cosmos.base.tendermint.v1beta1.Service";
const NODE = "/cosmos.base.node.v1beta1.Service";

/** Descriptions of the groups. */
export const MODULES: Readonly<Record<string, string>> = {
  auth: "accounts",
  bank: "balances and supply",
  mint: "inflation",
  staking: "validators and delegations",
  distribution: "rewards, commission, the community pool",
  slashing: "missed blocks and jail",
  gov: "proposals, deposits, votes",
  upgrade: "planned upgrades",
  params: "parameters by the names of older releases",
  evm: "the EVM's state",
  feemarket: "prices of gas",
  consensus: "parameters of consensus",
  node: "the node itself",
};

/** All commands that ask one method and print its answer. */
export const QUERY_COMMANDS: readonly QueryCommand[] = [
  ...MODULE_QUERIES,
  {
    words: "supply",
    path: "/causeway.supply.v1.Query/Supply",
    description: "total, burned, locked and circulating supply, with the height",
  },
  {
    words: "account",
    path: `${AUTH}/Account`,
    description: "an account: number and sequence",
    arguments: ["address"],
  },
  {
    words: "auth account",
    path: `${AUTH}/Account`,
    description: "an account: number and sequence",
    arguments: ["address"],
  },
  {
    words: "auth account-info",
    path: `${AUTH}/AccountInfo`,
    description: "what every kind of account has",
    arguments: ["address"],
  },
  {
    words: "auth accounts",
    path: `${AUTH}/Accounts`,
    description: "all accounts",
    isPaged: true,
  },
  {
    words: "auth address-by-acc-num",
    path: `${AUTH}/AccountAddressByID`,
    description: "the address with an account number: the chain gives none",
    arguments: ["account_id"],
  },
  {
    words: "auth bech32-prefix",
    path: `${AUTH}/Bech32Prefix`,
    description: "what addresses begin with",
  },
  {
    words: "auth address-bytes-to-string",
    path: `${AUTH}/AddressBytesToString`,
    description: "an address of its bytes, in hex or base64",
    arguments: ["address_bytes"],
  },
  {
    words: "auth address-string-to-bytes",
    path: `${AUTH}/AddressStringToBytes`,
    description: "the bytes of an address, in base64",
    arguments: ["address_string"],
  },
  { words: "auth params", path: `${AUTH}/Params`, description: "parameters of accounts" },
  {
    words: "auth module-accounts",
    path: `${AUTH}/ModuleAccounts`,
    description: "accounts of the chain itself",
  },
  {
    words: "auth module-account",
    path: `${AUTH}/ModuleAccountByName`,
    description: "an account of the chain itself by its name",
    arguments: ["name"],
  },
  {
    words: "bank balances",
    path: `${BANK}/AllBalances`,
    description: "all balances of an account, or with --denom one",
    arguments: ["address"],
    fields: [["denom", "denom"]],
    isPaged: true,
    instead: ["denom", `${BANK}/Balance`],
  },
  {
    words: "bank balance",
    path: `${BANK}/Balance`,
    description: "one balance of an account",
    arguments: ["address", "denom"],
  },
  {
    words: "bank spendable-balances",
    path: `${BANK}/SpendableBalances`,
    description: "what an account can spend",
    arguments: ["address"],
    isPaged: true,
  },
  {
    words: "bank spendable-balance",
    path: `${BANK}/SpendableBalanceByDenom`,
    description: "what an account can spend of one denomination",
    arguments: ["address", "denom"],
  },
  {
    words: "bank denom-owners",
    path: `${BANK}/DenomOwners`,
    description: "accounts that have a denomination",
    arguments: ["denom"],
    isPaged: true,
  },
  {
    words: "bank total",
    aliases: ["total-supply"],
    path: `${BANK}/TotalSupply`,
    description: "supply of all denominations, or with --denom of one",
    fields: [["denom", "denom"]],
    isPaged: true,
    instead: ["denom", `${BANK}/SupplyOf`],
  },
  {
    words: "bank total-supply-of",
    path: `${BANK}/SupplyOf`,
    description: "supply of one denomination",
    arguments: ["denom"],
  },
  {
    words: "bank denom-metadata",
    path: `${BANK}/DenomsMetadata`,
    description: "what wallets show of the denominations, or of one",
    arguments: ["[denom]"],
    fields: [["denom", "denom"]],
    isPaged: true,
    instead: ["denom", `${BANK}/DenomMetadata`],
  },
  {
    words: "bank denoms-metadata",
    path: `${BANK}/DenomsMetadata`,
    description: "what wallets show of the denominations",
    isPaged: true,
  },
  { words: "bank params", path: `${BANK}/Params`, description: "parameters of transfers" },
  {
    words: "bank send-enabled",
    path: `${BANK}/SendEnabled`,
    description: "denominations that differ from the default",
    isPaged: true,
  },
  { words: "mint params", path: `${MINT}/Params`, description: "parameters of minting" },
  { words: "mint inflation", path: `${MINT}/Inflation`, description: "inflation a year" },
  {
    words: "mint annual-provisions",
    path: `${MINT}/AnnualProvisions`,
    description: "coins that a year mints at the present supply",
  },
  {
    words: "evm account",
    path: `${EVM}/Account`,
    description: "balance, nonce and code hash of an account",
    arguments: ["address"],
  },
  {
    words: "evm storage",
    path: `${EVM}/Storage`,
    description: "one storage slot of a contract",
    arguments: ["address", "key"],
  },
  {
    words: "evm code",
    path: `${EVM}/Code`,
    description: "code of a contract",
    arguments: ["address"],
  },
  { words: "evm params", path: `${EVM}/Params`, description: "parameters of the EVM" },
  { words: "evm config", path: `${EVM}/Config`, description: "forks that are in force" },
  { words: "feemarket params", path: `${FEE_MARKET}/Params`, description: "parameters of fees" },
  { words: "feemarket base-fee", path: `${FEE_MARKET}/BaseFee`, description: "the base fee: 0" },
  { words: "feemarket block-gas", path: `${FEE_MARKET}/BlockGas`, description: "gas of a block" },
  {
    words: "consensus params",
    path: "/cosmos.consensus.v1.Query/Params",
    description: "bounds of blocks and of evidence",
  },
  {
    words: "consensus comet",
    path: `${TENDERMINT}/GetNodeInfo`,
    description: "what the node tells its peers",
  },
  { words: "node config", path: `${NODE}/Config`, description: "settings that clients may need" },
  { words: "node status", path: `${NODE}/Status`, description: "newest and oldest height" },
  {
    words: "comet-validator-set",
    aliases: ["tendermint-validator-set"],
    path: `${TENDERMINT}/GetLatestValidatorSet`,
    description: "validators that decide, of the newest height or of one",
    arguments: ["[height]"],
    isPaged: true,
    instead: ["height", `${TENDERMINT}/GetValidatorSetByHeight`],
  },
];
