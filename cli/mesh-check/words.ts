/** The words of `mesh-check`'s command line: what it is called with, and how that is explained. */
import { type Command, Option } from "commander";
import { DEFAULT_PORTS } from "../../chain/networks.js";

/** The words of the command line. */
export interface MeshCheckOptions {
  readonly url?: string;
  readonly node?: string;
  readonly from: string;
  readonly to: string;
  readonly seed?: string;
  readonly concurrency: string;
  readonly json?: boolean;
}

/** Where the Data API of a kit without a port offset is. */
export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORTS.sidecarOnline}`;

/** Requests at once by default: enough to keep a server on two cores busy. */
const DEFAULT_CONCURRENCY = 16;

/** Gives a command its description, help and options; `--json` is left to the caller. */
export function describeMeshCheck(command: Command): Command {
  return command
    .description("prove that a Data API explains every balance of its chain, from genesis to tip")
    .addOption(new Option("--url <url>", `the Data API (else ${DEFAULT_URL})`))
    .addOption(new Option("--node <url>", "the node's JSON-RPC, as an independent witness"))
    .addOption(new Option("--from <index>", "first block").default("0"))
    .addOption(new Option("--to <index>", 'last block, or "tip"').default("tip"))
    .addOption(new Option("--seed <n>", "repeats the choice of idle balances"))
    .addOption(
      new Option("--concurrency <n>", "requests at once").default(String(DEFAULT_CONCURRENCY)),
    )
    .addHelpText("after", "\nExit code: 0 clean, 1 faults, 2 the check could not be made.");
}
