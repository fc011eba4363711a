/**
 * The `causeway` command's tree: options that all commands share, and the commands. What a command
 * runs is loaded when it is run: nobody waits for the code of the others.
 */
import { Command, Option } from "commander";
import { escapeUnshowable } from "../../chain/evm/foreign-text.js";
import { type Environment, readPortOffset } from "../../runtime/config/config.js";
import type { CommandContext } from "../command-context.js";
import {
  type AuditBalanceOptions,
  type AuditExecutionOptions,
  describeAuditBalance,
  describeAuditExecution,
  describeVerifyBalance,
  type VerifyBalanceOptions,
} from "../audit/words.js";
import { addLedgerAudits } from "../audit/ledger/program.js";
import type { InitFlags } from "../commands/init.js";
import type { CreateKeyOptions, ListCallsOptions } from "../commands/keys.js";
import type { TestnetFlags } from "../commands/testnet.js";
import type { AcceptCodeOptions } from "../commands/tokens/state.js";
import type { AddTokenOptions } from "../commands/tokens/list.js";
import type { ListWithdrawalsOptions } from "../commands/withdrawals/withdrawals.js";
import type { ReleaseOptions } from "../commands/withdrawals/release.js";
import { resolveHome } from "../home/home.js";
import { addConsoleCommands } from "./console-program.js";
import { addLedgerCommands } from "./ledger-program.js";
import { addApprovalCommands, addKillSwitchCommands } from "./policy-program.js";
import { addRecoveryCommands } from "./recovery-program.js";
import { addTreasuryCommands } from "./treasury-program.js";
import { addWalletCommands } from "./wallet-program.js";
import { describeMeshCheck, type MeshCheckOptions } from "../mesh-check/words.js";
import { addQueryCommands } from "../queries/program.js";
import { addTxCommands } from "../transactions/program.js";
import { addUpgradeCommands } from "../upgrade/program.js";
import { addWebhookCommands } from "../webhooks/program.js";
import { EVM_CHOICES } from "../home/evm-choice.js";
import {
  addShared,
  faultCodeOf,
  judging,
  refuseEmptyPaths,
  refuseRepeats,
  type Runner,
  type SharedOptions,
} from "../shared-options.js";

/** What the entry gives. */
export interface ProgramOptions {
  readonly version: string;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  /** A long line, by its parts. */
  readonly printParts?: (parts: Iterable<string>, signal: AbortSignal) => Promise<void>;
  /** A line beside the output, on standard error. */
  readonly warn: (line: string) => void;
  readonly setExitCode: (code: number) => void;
  /** Told before a command runs: the exit code where it ends by a fault, which is thrown. */
  readonly setFaultCode?: (code: number) => void;
}

/** Builds the program; commands set the exit code through `setExitCode`. */
export function createProgram(options: ProgramOptions): Command {
  const program = new Command("causeway")
    .description("Operates a Causeway kit; works beside a running one.")
    .version(options.version)
    .showHelpAfterError("(see --help)")
    .hook("preAction", (_program, command) => options.setFaultCode?.(faultCodeOf(command)));
  const contextOf = async (shared: SharedOptions): Promise<CommandContext> => {
    const home = resolveHome(shared.home, options.env);
    const portOffset = await portOffsetOf(home, shared.portOffset);
    const { env, signal } = options;
    const json = shared.json === true;
    // Reasons and names of others are among what is printed: none of them writes a line of its own.
    const shown = (text: string) => escapeUnshowable(text, json ? "many" : "one");
    const print = (text: string) => options.print(shown(text));
    const { printParts: write } = options;
    if (write === undefined) return { home, portOffset, json, env, signal, print };
    const printParts = (parts: Iterable<string>) => write(eachShown(parts, shown), signal);
    return { home, portOffset, json, env, signal, print, printParts };
  };
  const run =
    <O extends SharedOptions>(work: (context: CommandContext, own: O) => Promise<number>) =>
    async (own: O): Promise<void> => {
      options.setExitCode(await work(await contextOf(own), own));
    };
  addInitCommands(program, run);
  addNodeCommands(program, run, options);
  addUpgradeCommands(program, run);
  addKitCommands(program, run);
  addQueryCommands(program, run);
  addTxCommands(program, run, options);
  addAuditCommands(program, run, options);
  addTokenCommands(program, run);
  addDepositCommands(program, run);
  addWithdrawalCommands(program, run);
  addWalletCommands(program, run);
  addTreasuryCommands(program, run);
  addKillSwitchCommands(program, run);
  addKeyCommands(program, run);
  addConsoleCommands(program, run);
  addWebhookCommands(program, run);
  addRecoveryCommands(program, run);
  addLedgerCommands(program, run);
  addIndexerCommands(program, run, options);
  // In the SDK's commands the last one counts, as there.
  const likeTheSdk = ["query", "tx"];
  for (const command of program.commands) {
    if (!likeTheSdk.includes(command.name())) refuseRepeats(command);
  }
  refuseEmptyPaths(program);
  return program;
}

function* eachShown(parts: Iterable<string>, shown: (text: string) => string): Generator<string> {
  for (const part of parts) yield shown(part);
}

/** The flag, else what the home's files were written with. */
async function portOffsetOf(home: string, flag: string | undefined): Promise<number> {
  if (flag === undefined) {
    const { KIT_CONFIG_NAMES } = await import("../home/kit-config.js");
    return readPortOffset(home, KIT_CONFIG_NAMES);
  }
  const { parsePortOffset } = await import("../../runtime/process/process-arguments.js");
  return parsePortOffset(flag);
}

function paramOption(): Option {
  return new Option(
    "--param <module.name=value>",
    "a parameter of the modules in genesis, any number of times: staking.unbonding_time=120s",
  )
    .argParser((text: string, others: readonly string[]) => [...others, text])
    .default([]);
}

function addInitCommands(program: Command, run: Runner): void {
  addShared(program.command("init"))
    .description(
      "write keys, settings and genesis; without --network the kit's home on a local chain, which " +
        "a second run completes and never overwrites",
    )
    .option("--network <name>", "mainnet or testnet: a full node's home; local: the kit's home")
    .option("--moniker <name>", "name of the node on mainnet or testnet")
    .option("--genesis <file>", "genesis of a network that exists: a full node's home on it")
    .option("--seeds <list>", "nodes that tell that node its peers, separated by commas")
    .option("--node-url <url>", "the kit's home on somebody's node, without one of its own")
    .option(
      "--node-ws-url <url>",
      "WebSocket of that node (default: one port above, or the same place where the URL has no port)",
    )
    .option("--block-interval-ms <n>", "time between blocks of the new local chain")
    .addOption(paramOption())
    .option("--role-homes <dir>", "also write one home per process, each with its own files only")
    .action(
      run<SharedOptions & InitFlags>(async (context, own) => {
        const { runInitCommand } = await import("../commands/init.js");
        return runInitCommand(context, own);
      }),
    );
  program
    .command("testnet")
    .description(
      "write the homes of a network of its own: DIR/node0.., DIR/full0.. and DIR/faucet.key; ports " +
        "of each are the defaults + the offset + 100 x index",
    )
    .requiredOption("--validators <n>", "validators, all of the same power")
    .option("--full-nodes <n>", "nodes that only follow (default 0)")
    .option("--out <dir>", "folder for the network")
    .option("--home <dir>", "the same folder, where a script gives one to every command")
    .option("--port-offset <n>", "added to every port (default 0)")
    .option("--hosts <list>", "one host per node, separated by commas, instead of 127.0.0.1")
    .option("--block-interval-ms <n>", "time between blocks (default 2000)")
    .addOption(paramOption())
    .option("--json", "print one JSON document")
    .action((own: SharedOptions & TestnetFlags) => {
      const work = run(async (context) => {
        const { runTestnet } = await import("../commands/testnet.js");
        return runTestnet(context, own);
      });
      // Its offset is no home's: it is read with the other flags, so that all faults are told.
      return work({ json: own.json === true, portOffset: "0" });
    });
}

interface StartFlags {
  readonly evm?: string;
  readonly skipUpgrade?: readonly string[];
  readonly unsafeSkipUpgrades?: readonly string[];
}

function addNodeCommands(program: Command, run: Runner, options: ProgramOptions): void {
  judging(addShared(program.command("status")))
    .description(
      "of a kit: what runs, how high the chain is, how far the watcher is behind; of a node's " +
        "home: height, whether it is catching up, peers, validator, age of the newest block; " +
        "exit 1 when a part is not ready, or no block has come for 30 s",
    )
    .action(run(async (context) => (await import("../commands/status.js")).runStatus(context)));
  program
    .command("start")
    .description(
      "run the node of a home in the foreground; its log goes to standard output. Goes on with a release " +
        "that `causeway upgrade stage` has named, at the height of an upgrade that this one does not know",
    )
    .option("--home <dir>", "home folder (else CAUSEWAY_HOME, else .causeway)")
    .option("--port-offset <n>", "moves the ports that were never edited (else as in the home)")
    .option("--json", "as of every command; each line of the log is a JSON document anyway")
    .addOption(
      new Option("--evm <engine>", "which EVM executes blocks (else as in app.toml)").choices([
        ...EVM_CHOICES,
      ]),
    )
    .option(
      "--skip-upgrade <height...>",
      "gives up the upgrade planned for a height, beside those of app.toml, where it has to stand from " +
        "then on; only where the validators have agreed on it",
    )
    .addOption(
      new Option("--unsafe-skip-upgrades <height...>", "the same, as the SDK calls it").hideHelp(),
    )
    .action(async (own: SharedOptions & StartFlags) => {
      const { runStart } = await import("../commands/start.js");
      const home = resolveHome(own.home, options.env);
      const { portOffset, evm, skipUpgrade = [], unsafeSkipUpgrades = [] } = own;
      const skipUpgrades = [...skipUpgrade, ...unsafeSkipUpgrades];
      const { env, signal, warn } = options;
      const started = { home, portOffset, evm, skipUpgrades, env, signal, warn };
      options.setExitCode(await runStart(started));
    });
}

function addKitCommands(program: Command, run: Runner): void {
  judging(addShared(program.command("doctor")))
    .description("check settings, keys, disk and every part; says what to do about findings")
    .option("--strict", "warnings fail too")
    .action(
      run<SharedOptions & { strict?: boolean }>(async (context, own) => {
        const { runDoctor } = await import("../commands/doctor.js");
        return runDoctor(context, { strict: own.strict === true });
      }),
    );
  addShared(program.command("migrate"))
    .description("bring the ledger's tables to this version")
    .action(run(async (context) => (await import("../commands/migrate.js")).runMigrate(context)));
  judging(addShared(program.command("reconcile")))
    .description("compare ledger and chain at one height, tolerance 0; exit 1 on a break")
    .action(run(async (context) => (await import("../ledger/reconcile.js")).runReconcile(context)));
  judging(addShared(describeMeshCheck(program.command("mesh-check")))).action(
    run<SharedOptions & MeshCheckOptions>(async (context, own) => {
      const { runMeshCheckOfHome } = await import("../mesh-check/of-home.js");
      return runMeshCheckOfHome(context, own);
    }),
  );
}

function addAuditCommands(program: Command, run: Runner, { warn }: ProgramOptions): void {
  const audits = judging(program.command("audit"));
  audits.description("a second opinion on what the chain says");
  addShared(describeAuditExecution(audits.command("execution"))).action(
    run<SharedOptions & AuditExecutionOptions>(async (context, own) => {
      const { runAuditExecution } = await import("../commands/audit.js");
      return runAuditExecution(context, own, warn);
    }),
  );
  addShared(describeAuditBalance(audits.command("balance"))).action(
    (address: string, own: SharedOptions & AuditBalanceOptions) =>
      run<SharedOptions & AuditBalanceOptions>(async (context) => {
        const { runAuditBalance } = await import("../commands/balance-proof.js");
        return runAuditBalance(context, { ...own, address }, warn);
      })(own),
  );
  const verifies = judging(program.command("verify"));
  verifies.description("checks what others wrote, offline");
  addShared(describeVerifyBalance(verifies.command("balance"))).action(
    (file: string, own: SharedOptions & VerifyBalanceOptions) =>
      run<SharedOptions & VerifyBalanceOptions>(async (context) => {
        const { runVerifyBalance } = await import("../commands/balance-proof.js");
        return runVerifyBalance(context, { ...own, file }, warn);
      })(own),
  );
  addLedgerAudits({ audit: audits, verify: verifies }, run, warn);
}

function addIndexerCommands(program: Command, run: Runner, { warn }: ProgramOptions): void {
  const indexer = program.command("indexer").description("the index behind the indexer's REST API");
  judging(addShared(indexer.command("verify")))
    .description("hold every balance of the index against state; exit 1 when coins differ")
    .action(
      run(async (context) =>
        (await import("../commands/indexer.js")).runVerifyIndex(context, warn),
      ),
    );
  addShared(indexer.command("rebuild"))
    .description("make the index anew beside the live one, which goes on serving, then swap")
    .action(
      run(async (context) =>
        (await import("../commands/indexer.js")).runIndexer(context, "rebuild", warn),
      ),
    );
}

function addTokenCommands(program: Command, run: Runner): void {
  const tokens = program
    .command("tokens")
    .description("the ERC-20 registry of the home; a change counts after a restart of the kit");
  addShared(tokens.command("add"))
    .description("pin a token; its contract need not exist yet")
    .requiredOption("--address <address>", "contract, 0x hex")
    .requiredOption("--symbol <symbol>", "what it is called here, for ever")
    .requiredOption("--decimals <n>", "0 to 255, as the contract has them")
    .action(
      run<SharedOptions & AddTokenOptions>(async (context, { address, symbol, decimals }) => {
        const { runAddToken } = await import("../commands/tokens/list.js");
        return runAddToken(context, { address, symbol, decimals });
      }),
    );
  addShared(tokens.command("list"))
    .description("the pinned tokens")
    .action(
      run(async (context) => (await import("../commands/tokens/list.js")).runListTokens(context)),
    );
  judging(addShared(tokens.command("check")))
    .description("hold the list against the contracts and the sidecar; exit 1 when a token fails")
    .action(
      run(async (context) => (await import("../commands/tokens/check.js")).runCheckTokens(context)),
    );
  judging(addShared(tokens.command("state")))
    .description("the ledger's tokens and their accepted code; exit 1 when one is paused")
    .action(
      run(async (context) => (await import("../commands/tokens/state.js")).runTokenStates(context)),
    );
  addShared(tokens.command("accept-code"))
    .description("let a token go on with the code that its contract runs now; look at it first")
    .argument("<symbol>", "the paused token")
    .option("--operator <name>", "who decides, for the record (else the user)")
    .action((symbol: string, own: SharedOptions & AcceptCodeOptions) =>
      run<SharedOptions & AcceptCodeOptions>(async (context, { operator }) => {
        const { runAcceptCode } = await import("../commands/tokens/state.js");
        return runAcceptCode(context, symbol, { operator });
      })(own),
    );
}

function addDepositCommands(program: Command, run: Runner): void {
  const deposits = program.command("deposits").description("deposits and what halts them");
  addShared(deposits.command("list"))
    .description("deposits to an address")
    .requiredOption("--address <address>", "deposit address, addr1... or 0x hex")
    .action(
      run<SharedOptions & { address: string }>(async (context, own) => {
        const { runListDeposits } = await import("../commands/deposits.js");
        return runListDeposits(context, own);
      }),
    );
  judging(addShared(deposits.command("status")))
    .description(
      "how far deposits are booked, and what halts crediting; exit 1 when something does",
    )
    .action(
      run(async (context) => (await import("../commands/deposits.js")).runDepositsStatus(context)),
    );
  addShared(deposits.command("resume"))
    .description("go on crediting after the cause of an incident is gone")
    .action(
      run(async (context) => (await import("../commands/deposits.js")).runDepositsResume(context)),
    );
}

function addWithdrawalCommands(program: Command, run: Runner): void {
  const withdrawals = program
    .command("withdrawals")
    .description("withdrawals on their way, and the switch that freezes signing");
  judging(addShared(withdrawals.command("list")))
    .description("withdrawals, oldest first; exit 1 while signing is frozen")
    .option("--status <status>", "only in this state")
    .option("--customer <id>", "only of this customer")
    .option("--limit <n>", "rows at most (default 100)")
    .option("--after <position>", "only behind this position")
    .action(
      run<SharedOptions & ListWithdrawalsOptions>(async (context, own) => {
        const { runListWithdrawals } = await import("../commands/withdrawals/withdrawals.js");
        return runListWithdrawals(context, own);
      }),
    );
  judging(addShared(withdrawals.command("show")))
    .description("everything about one withdrawal; exit 1 when there is none")
    .argument("<id>", "id of the withdrawal")
    .action((id: string, own: SharedOptions) =>
      run(async (context) => {
        const { runShowWithdrawal } = await import("../commands/withdrawals/withdrawals.js");
        return runShowWithdrawal(context, id);
      })(own),
    );
  addShared(withdrawals.command("freeze"))
    .description("sign nothing more until release")
    .option("--reason <text>", "why, for the record")
    .option("--wallet <address>", "only this wallet (else all that sign)")
    .action(
      run<SharedOptions & { reason?: string; wallet?: string }>(async (context, own) => {
        const { runFreezeWithdrawals } = await import("../commands/withdrawals/withdrawals.js");
        return runFreezeWithdrawals(context, { reason: own.reason, wallet: own.wallet });
      }),
    );
  judging(addShared(withdrawals.command("cancel")))
    .description("do not pay a withdrawal any more; exit 1 when it is too late")
    .argument("<id>", "id of the withdrawal")
    .requiredOption("--reason <text>", "why, for the record")
    .action((id: string, own: SharedOptions & { reason: string }) =>
      run<SharedOptions & { reason: string }>(async (context, { reason }) => {
        const { runCancelWithdrawal } = await import("../commands/withdrawals/withdrawals.js");
        return runCancelWithdrawal(context, { id, reason });
      })(own),
    );
  addApprovalCommands(withdrawals, run);
  judging(addShared(withdrawals.command("release")))
    .description(
      "let signing go on after you looked; receipts are checked first; exit 1 while something " +
        "stays frozen",
    )
    .argument("[id]", "decide about this withdrawal only")
    .option("--paid-by <hash>", "with an id: this mined transaction was its payment")
    .option("--not-paid", "with an id: it was never paid, pay it")
    .option("--acknowledge <hash...>", "transactions nobody asked for, which you looked at")
    .option("--wallet <address>", "only this wallet (else all that sign)")
    .option("--accept-foreign", "acknowledge all that the release finds, each by its hash")
    .option("--reason <text>", "what you found, for the record")
    .option("--operator <name>", "who decides, for the record (else the user)")
    .action((id: string | undefined, own: SharedOptions & Omit<ReleaseOptions, "id">) =>
      run<SharedOptions & Omit<ReleaseOptions, "id">>(async (context, { paidBy, ...rest }) => {
        const { runReleaseWithdrawals } = await import("../commands/withdrawals/release.js");
        return runReleaseWithdrawals(context, { id, paidBy, ...rest });
      })(own),
    );
}

function addKeyCommands(program: Command, run: Runner): void {
  const keys = program
    .command("keys")
    .description("who may use the deposit and the withdrawal API, and what they changed");
  addShared(keys.command("create"))
    .description("make a key; it is shown once and kept nowhere")
    .requiredOption(
      "--scope <list>",
      "what it is good for, separated by commas: deposits:read, ...",
    )
    .option("--name <name>", "what people call it")
    .option("--expires <when>", "duration (90d, 12h, 30m, 45s) or date; else it does not expire")
    .option("--rate <n>", "calls per second to each API; else no bound")
    .option("--out <file>", "write it to a new file of mode 600 and do not show it")
    .option("--sign <kind>", "its changing requests are signed: hmac or ed25519")
    .option("--public-key <file>", "PEM of the Ed25519 public key")
    .action(
      run<SharedOptions & CreateKeyOptions>(async (context, own) => {
        const { runCreateKey } = await import("../commands/keys.js");
        return runCreateKey(context, own, Date.now());
      }),
    );
  addShared(keys.command("list"))
    .description("all keys, without their secrets")
    .action(run(async (context) => (await import("../commands/keys.js")).runListKeys(context)));
  addShared(keys.command("revoke"))
    .description("end a key, at once")
    .argument("<id>", "id of the key")
    .action((id: string, own: SharedOptions) =>
      run(async (context) => (await import("../commands/keys.js")).runRevokeKey(context, id))(own),
    );
  addShared(keys.command("calls"))
    .description("calls that may have changed something, oldest first")
    .option("--key <id>", "only of this key (api.key: the home's own)")
    .option("--limit <n>", "rows, 1000 at most (default 100)")
    .option("--after <position>", "only behind this position")
    .action(
      run<SharedOptions & ListCallsOptions>(async (context, own) => {
        const { runListCalls } = await import("../commands/keys.js");
        return runListCalls(context, own);
      }),
    );
}
