/** `causeway tx`: all commands that make messages, with the names of the SDK's command line. */
import { BANK_COMMANDS } from "./commands/bank.js";
import { DISTRIBUTION_COMMANDS } from "./commands/distribution.js";
import { GOV_COMMANDS } from "./commands/gov.js";
import { STAKING_COMMANDS } from "./commands/staking.js";
import type { TxCommand } from "./tx-command.js";

/** Descriptions of the groups. */
export const TX_MODULES: Readonly<Record<string, string>> = {
  bank: "transfers",
  staking: "validators and delegations",
  validator: "registration of validators",
  distribution: "rewards, commission, the community pool",
  slashing: "return of jailed validators",
  gov: "proposals, deposits, votes",
  upgrade: "proposals of upgrades",
};

/** All commands. */
export const TX_COMMANDS: readonly TxCommand[] = [
  ...BANK_COMMANDS,
  ...STAKING_COMMANDS,
  ...DISTRIBUTION_COMMANDS,
  ...GOV_COMMANDS,
];
