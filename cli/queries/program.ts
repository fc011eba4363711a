/** The commands of `causeway query`, with the SDK's names and flags. */
import type { Command } from "commander";
import { refuseFlags } from "../refused-flags.js";
import { addShared, type Runner, type SharedOptions } from "../shared-options.js";
import type { QueryFlags } from "./run.js";
import type { QueryCommand } from "./query-command.js";
import { MODULES, QUERY_COMMANDS } from "./table.js";

type Options = SharedOptions & QueryFlags;

/** Why a node's gRPC server is not named. */
const NO_GRPC =
  "Queries go to the node's consensus RPC, which gives the same answers: name it with --node.";

/** Adds `query`, also as `q`. */
export function addQueryCommands(program: Command, run: Runner): void {
  const query = program
    .command("query")
    .alias("q")
    .description("ask a node's state; answers come in the form of the REST interface");
  const groups = new Map<string, Command>();
  for (const command of QUERY_COMMANDS) {
    const [first = "", second] = command.words.split(" ");
    if (second === undefined) {
      groups.set(first, addCommand(query, first, command, run));
      continue;
    }
    const group = groups.get(first) ?? query.command(first).description(MODULES[first] ?? first);
    groups.set(first, group);
    addCommand(group, second, command, run);
  }
  addBlockCommand(query, run);
  addBlocksCommands(query, run);
  addTransactionCommands(query, run);
  addWaitCommand(query, run);
}

function addCommand(parent: Command, name: string, query: QueryCommand, run: Runner): Command {
  const command = addFlags(parent.command(name)).description(query.description);
  for (const alias of query.aliases ?? []) command.alias(alias);
  for (const argument of query.arguments ?? []) {
    command.argument(argument.startsWith("[") ? argument : `<${argument}>`);
  }
  for (const [flag, field, alias] of query.fields ?? []) {
    const other = alias === undefined ? "" : `--${alias}, `;
    command.option(`${other}--${flag} <${field}>`, field);
  }
  if (query.isPaged === true) addPageFlags(command);
  return command.action((...given: readonly unknown[]) => {
    const count = query.arguments?.length ?? 0;
    const values = given
      .slice(0, count)
      .map((value) => (typeof value === "string" ? value : undefined));
    // A group that is a command itself takes the flags that both know.
    const flags = command.optsWithGlobals<Options>();
    return run<Options>(async (context, own) => {
      const { runQuery } = await import("./run.js");
      return runQuery(context, query, values, own);
    })(flags);
  });
}

function addBlockCommand(query: Command, run: Runner): void {
  addFlags(query.command("block"))
    .description("the newest block, or one by its height or its hash of consensus")
    .argument("[height|hash]", "a whole number; 64 hex digits")
    .option("--type <type>", "height or hash (else as it looks)")
    .action((given: string | undefined, own: Options) =>
      run<Options>(async (context, flags) => {
        const { runQueryBlock } = await import("./run-block.js");
        return runQueryBlock(context, given, flags);
      })(own),
    );
}

function addBlocksCommands(query: Command, run: Runner): void {
  addFlags(query.command("blocks"))
    .description("blocks whose events satisfy a query")
    .option("--query <text>", "a query of CometBFT: type.attribute='value' AND block.height > 7")
    .option("--page <n>", "page, from 1")
    .option("--limit <n>", "blocks on a page (default 100, at most 100)")
    .option("--order_by <order>", "asc or desc")
    .action(
      run<Options>(async (context, flags) => {
        const { runQueryBlocks } = await import("./run-blocks.js");
        return runQueryBlocks(context, flags);
      }),
    );
  addFlags(query.command("block-results"))
    .description("results and events of the newest block, or of one by its height")
    .argument("[height]", "a whole number")
    .action((given: string | undefined, own: Options) =>
      run<Options>(async (context, flags) => {
        const { runQueryBlockResults } = await import("./run-blocks.js");
        return runQueryBlockResults(context, given, flags);
      })(own),
    );
}

function addWaitCommand(query: Command, run: Runner): void {
  addFlags(query.command("wait-tx").alias("event-query-tx-for"))
    .description(
      "waits until a block has a transaction: by its hash, or as a tx command printed it",
    )
    .argument("[hash]", "64 hex digits (else the output of a tx command on standard input)")
    .option("--timeout <time>", "how long to wait", "15s")
    .action((given: string | undefined, own: Options) =>
      run<Options>(async (context, flags) => {
        const { runWaitTx } = await import("./run-wait.js");
        return runWaitTx(context, given, flags, process.stdin);
      })(own),
    );
}

function addTransactionCommands(query: Command, run: Runner): void {
  addFlags(query.command("tx"))
    .description("a transaction by its hash, that of the SDK or that of the EVM, or as --type says")
    .argument("<hash|acc_seq|signature>", "64 hex digits; ADDRESS/SEQUENCE; base64, by commas")
    .option("--type <type>", "hash, acc_seq or signature", "hash")
    .action((given: string, own: Options) =>
      run<Options>(async (context, flags) => {
        const { runQueryTx } = await import("./run-tx.js");
        return runQueryTx(context, given, flags);
      })(own),
    );
  addFlags(query.command("txs"))
    .description("transactions whose events satisfy all conditions")
    .option("--events <list>", "conditions type.attribute=value, joined by &")
    .option("--query <text>", "a query of CometBFT: type.attribute='value' AND ...")
    .option("--page <n>", "page, from 1")
    .option("--limit <n>", "transactions on a page (default 100, at most 1000)")
    .option("--order_by <order>", "asc or desc")
    .action(
      run<Options>(async (context, flags) => {
        const { runQueryTxs } = await import("./run.js");
        return runQueryTxs(context, flags);
      }),
    );
}

function addFlags(command: Command): Command {
  refuseFlags(command, ["--grpc-addr <addr>", "--grpc-insecure"], NO_GRPC);
  return addShared(command)
    .option("--node <url>", "consensus RPC of the node to ask (else that of the home)")
    .option("--height <n>", "state after this height (else the newest)")
    .option("-o, --output <form>", "text or json")
    .option("--chain-id <id>", "taken as in the SDK's command line; the node knows its own");
}

/** Each by both of the names that releases of the SDK have for it. */
function addPageFlags(command: Command): void {
  command
    .option("--page <n>", "page, from 1")
    .option("--page-key <key>", "next_key of the page before")
    .option("--page-offset, --offset <n>", "items to leave out")
    .option("--page-limit, --limit <n>", "items on a page (default 100, at most 1000)")
    .option("--page-count-total, --count-total", "tell how many there are")
    .option("--page-reverse, --reverse", "last ones first");
}
