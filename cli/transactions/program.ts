/** The commands of `causeway tx`, with the SDK's names and flags. */
import type { Command } from "commander";
import type { Environment } from "../../runtime/config/config.js";
import { refuseFlags } from "../refused-flags.js";
import {
  addShared,
  refuseEmptyPaths,
  refuseKept,
  type Runner,
  type SharedOptions,
} from "../shared-options.js";
import type { TxContext } from "./run.js";
import type { TxCommand } from "./tx-command.js";

type Options = SharedOptions & Readonly<Record<string, unknown>>;

const ONE_PAYS =
  "Whoever acts signs, and whoever signs pays: the chain knows no other payer and no grants.";
const ALL_ORDERED =
  "The chain takes no unordered transactions: each has a sequence of its account.";

interface Given {
  readonly env: Environment;
  readonly warn: (line: string) => void;
}

/** Adds `tx`; what is below it is loaded for who asks for it: other commands start without. */
export function addTxCommands(program: Command, run: Runner, given: Given): void {
  const tx = program
    .command("tx")
    .description("make, sign and send Cosmos transactions: staking, governance, transfers");
  // "help tx" shows it as it stands.
  tx.addHelpText("after", () =>
    tx.commands.length === 0 ? "\nIts commands: causeway tx --help" : "",
  );
  program.hook("preSubcommand", async (_program, asked) => {
    if (asked === tx && tx.commands.length === 0) await addCommands(tx, run, given);
  });
}

async function addCommands(tx: Command, run: Runner, given: Given): Promise<void> {
  const { TX_COMMANDS, TX_MODULES } = await import("./table.js");
  const groups = new Map<string, Command>();
  for (const command of TX_COMMANDS) {
    const [module = "", name = ""] = command.words.split(" ");
    const group =
      groups.get(module) ?? tx.command(module).description(TX_MODULES[module] ?? module);
    groups.set(module, group);
    addMessageCommand(group.command(name), command, run, given);
  }
  addFileCommands(tx, run, given);
  // As of all others, which are there from the start.
  refuseKept(tx, given.env);
  refuseEmptyPaths(tx);
}

function addMessageCommand(command: Command, entry: TxCommand, run: Runner, { warn }: Given): void {
  addSendFlags(addSigningFlags(addNodeFlags(addShared(command))))
    .description(entry.description)
    .argument("[args...]")
    .usage(`[options] ${entry.args.join(" ")}`)
    .option("--gas <n>", "gas limit, or auto (default auto, offline 200000)")
    .option("--gas-adjustment <n>", "what an estimate is multiplied by (default 1.2)")
    .option("--fees <coins>", "fee, 1000atoken (else by the price)")
    .option(
      "--gas-prices <price>",
      "price of gas, 0.025atoken (else the least that the node takes)",
    )
    .option("--note <text>", "memo")
    .option("--memo <text>", "the same, as older releases have it")
    .option("--timeout-height <n>", "void after this height")
    .option("--timeout-duration <time>", "void when so much time has gone by: 90s, 1h30m")
    .option("--generate-only", "print the unsigned transaction")
    .option("--dry-run", "only estimate its gas");
  for (const alias of entry.aliases ?? []) command.alias(alias);
  for (const [flag, words] of entry.options ?? []) command.option(flag, words);
  command.action((args: readonly string[], own: Options) =>
    run<Options>(async (context, flags) => {
      const { runTx } = await import("./run.js");
      return runTx({ ...context, warn }, entry, args, flags);
    })(own),
  );
}

function addFileCommands(tx: Command, run: Runner, { warn }: Given): void {
  type FileWork = (
    files: typeof import("./run-files.js"),
    context: TxContext,
    file: string,
    flags: Options,
  ) => Promise<number> | number;
  const act = (command: Command, work: FileWork) =>
    command.action((file: string, own: Options) =>
      run<Options>(async (context, flags) => {
        return work(await import("./run-files.js"), { ...context, warn }, file, flags);
      })(own),
    );
  const file = "a transaction as JSON; - for standard input";
  act(
    addSigningFlags(addNodeFlags(addShared(tx.command("sign"))))
      .description("sign the transaction of a file")
      .argument("<file>", file)
      .option("-o, --output <form>", "json: the only form of transactions")
      .option("--output-document <file>", "write it to a new file instead"),
    (files, context, name, flags) => files.runSign(context, name, flags),
  );
  act(
    addSendFlags(addNodeFlags(addShared(tx.command("broadcast"))))
      .description("send a signed transaction")
      .argument("<file>", file),
    (files, context, name, flags) => files.runBroadcast(context, name, flags),
  );
  act(
    addNodeFlags(addShared(tx.command("simulate")))
      .description("the gas that a transaction would use now")
      .argument("<file>", file)
      .option("-s, --sequence <n>", "sequence of the signer (else asked)")
      .option("-o, --output <form>", "text or json"),
    (files, context, name, flags) => files.runSimulate(context, name, flags),
  );
  act(
    addNodeFlags(addShared(tx.command("encode")))
      .description("the bytes of a transaction in base64; no node is asked")
      .argument("<file>", file)
      .option("-o, --output <form>", "taken as in the SDK's command line; there is one form"),
    (files, context, name) => files.runEncode(context, name),
  );
  act(
    addNodeFlags(addShared(tx.command("decode")))
      .description("a transaction's bytes as JSON; no node is asked")
      .argument("<bytes>", "base64, or with --hex hex")
      .option("-o, --output <form>", "json or text (default json)")
      .option("-x, --hex", "the bytes are hex"),
    (files, context, name, flags) => files.runDecode(context, name, flags),
  );
}

function addNodeFlags(command: Command): Command {
  refuseFlags(command, ["--fee-payer <account>", "--fee-granter <account>"], ONE_PAYS);
  refuseFlags(command, ["--unordered"], ALL_ORDERED);
  return command
    .option("--node <url>", "consensus RPC of the node to ask (else that of the home)")
    .option("--chain-id <id>", "the chain that is signed for; the node has to be on it");
}

function addSigningFlags(command: Command): Command {
  return command
    .option("--from <key>", "who signs: a key file, a keystore, operator, faucet, or an account")
    .option("--keyring-dir <dir>", "folder with NAME.key or NAME.json of further names")
    .option("--keyring-backend <kind>", "taken as in the SDK's command line; keys lie in files")
    .option("--passphrase-file <file>", "passphrase of a keystore (else beside it)")
    .option("--offline", "ask no node; the transaction is printed and not sent")
    .option("-s, --sequence <n>", "sequence of the account (else asked)")
    .option("-a, --account-number <n>", "0: accounts of this chain have no other")
    .option("--sign-mode <mode>", "direct or amino-json (default direct)");
}

function addSendFlags(command: Command): Command {
  return command
    .option("-y, --yes", "do not ask before signing and sending")
    .option("-b, --broadcast-mode <mode>", "sync, async, or block to wait for it (default sync)")
    .option("-o, --output <form>", "text or json");
}
