/** The words of the audits: what they are called with, and how that is explained. */
import { type Command, Option } from "commander";

/** The words of the command line. */
export interface AuditExecutionOptions {
  readonly from: string;
  readonly to: string;
  readonly node?: string;
  readonly genesis?: string;
  readonly hash?: string;
}

/** Gives the command its description and options; the shared ones are left to the caller. */
export function describeAuditExecution(command: Command): Command {
  return command
    .description(
      "execute stored blocks again with @ethereumjs/vm, over state that is proven from the " +
        "headers, and compare receipts, logs, balance journal and state",
    )
    .addOption(new Option("--from <height>", "first block").default("1"))
    .addOption(new Option("--to <height>", 'last block, or "head"').default("head"))
    .addOption(new Option("--node <url>", "JSON-RPC of the node (else the home's)"))
    .addOption(new Option("--genesis <file>", "genesis of the chain (else the home's)"))
    .addOption(new Option("--hash <hash>", "hash that the last block must have"))
    .addHelpText("after", "\nExit code: 0 agrees, 1 something differs, 2 it could not be made.");
}

/** The words of the command line. */
export interface AuditBalanceOptions {
  readonly height: string;
  readonly node?: string;
  readonly consensus?: string;
  readonly genesis?: string;
  readonly out?: string;
}

/** Gives the command its description and options; the shared ones are left to the caller. */
export function describeAuditBalance(command: Command): Command {
  return command
    .description(
      "write a file that proves the balance of an account at a height: headers that the " +
        "validators signed, and the way from the block's state to the account",
    )
    .argument("<address>", "account, 0x hex or bech32")
    .addOption(
      new Option("--height <height>", 'block, or "head": the newest signed for').default("head"),
    )
    .addOption(new Option("--node <url>", "JSON-RPC of the node (else the home's)"))
    .addOption(new Option("--consensus <url>", "consensus RPC of the node (else the home's)"))
    .addOption(new Option("--genesis <file>", "genesis of the chain (else the home's)"))
    .addOption(new Option("--out <file>", "file to write (else balance-ADDRESS-HEIGHT.json)"))
    .addHelpText("after", "\nExit code: 0 written and verified, 2 it could not be made.");
}

/** The words of the command line. */
export interface VerifyBalanceOptions {
  readonly genesis?: string;
}

/** Gives the command its description and options; the shared ones are left to the caller. */
export function describeVerifyBalance(command: Command): Command {
  return command
    .description(
      "check a file of `audit balance` from the validators' signatures, without any network",
    )
    .argument("<file>", "the file")
    .addOption(new Option("--genesis <file>", "genesis of the chain (else the home's)"))
    .addHelpText("after", "\nExit code: 0 proven, 1 the file proves nothing, 2 it cannot be read.");
}
