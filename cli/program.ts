/** The `causeway` command's tree: options that all commands share, and the commands. */
import { Command, Option } from "commander";
import { type Environment, readPortOffset } from "../runtime/config.js";
import { parsePortOffset } from "../runtime/lifecycle.js";
import { type CommandContext, runDoctor, runInit, runMigrate, runStatus } from "./commands.js";
import { runListDeposits } from "./deposit-list.js";
import { runDepositsResume, runDepositsStatus } from "./deposits.js";
import { resolveHome } from "./home.js";
import { parseBlockInterval } from "./kit-arguments.js";
import { KIT_CONFIG_NAMES } from "./kit-config.js";
import { describeMeshCheck, type MeshCheckOptions } from "./mesh-check/command.js";
import { runMeshCheckOfHome } from "./mesh-check/of-home.js";
import { runReconcile } from "./reconcile.js";
import { runCheckTokens } from "./token-check.js";
import { type AddTokenOptions, runAddToken, runListTokens } from "./tokens.js";
import {
  type ListWithdrawalsOptions,
  runFreezeWithdrawals,
  runListWithdrawals,
  runShowWithdrawal,
} from "./withdrawals.js";
import { type ReleaseOptions, runReleaseWithdrawals } from "./withdrawals-release.js";

/** What the entry gives. */
export interface ProgramOptions {
  readonly version: string;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly setExitCode: (code: number) => void;
}

/** Options that every command takes, also after its name. */
interface SharedOptions {
  readonly home?: string;
  readonly portOffset?: string;
  readonly json?: boolean;
}

type Runner = <O extends SharedOptions>(
  work: (context: CommandContext, own: O) => Promise<number>,
) => (own: O) => Promise<void>;

/** Builds the program; commands set the exit code through `setExitCode`. */
export function createProgram(options: ProgramOptions): Command {
  const program = new Command("causeway")
    .description("Operates a Causeway kit; works beside a running one.")
    .version(options.version)
    .showHelpAfterError("(see --help)");
  const contextOf = (shared: SharedOptions): CommandContext => {
    const home = resolveHome(shared.home, options.env);
    const portOffset =
      shared.portOffset === undefined
        ? readPortOffset(home, KIT_CONFIG_NAMES)
        : parsePortOffset(shared.portOffset);
    const { env, signal, print } = options;
    return { home, portOffset, json: shared.json === true, env, signal, print };
  };
  const run =
    <O extends SharedOptions>(work: (context: CommandContext, own: O) => Promise<number>) =>
    async (own: O): Promise<void> => {
      options.setExitCode(await work(contextOf(own), own));
    };
  addKitCommands(program, run);
  addTokenCommands(program, run);
  addDepositCommands(program, run);
  addWithdrawalCommands(program, run);
  return program;
}

function addShared(command: Command): Command {
  return command
    .addOption(new Option("--home <dir>", "home folder (else CAUSEWAY_HOME, else .causeway)"))
    .addOption(new Option("--port-offset <n>", "port offset (else the one of the home)"))
    .addOption(new Option("--json", "print one JSON document"));
}

function addKitCommands(program: Command, run: Runner): void {
  addShared(program.command("init"))
    .description("write keys, settings and the genesis of a local chain; never overwrites")
    .option("--block-interval-ms <n>", "time between blocks of the new chain")
    .option("--role-homes <dir>", "also write one home per process, each with its own files only")
    .action(
      run<SharedOptions & { blockIntervalMs?: string; roleHomes?: string }>((context, own) => {
        const interval = own.blockIntervalMs;
        return runInit(context, {
          blockIntervalMs: interval === undefined ? undefined : parseBlockInterval(interval),
          roleHomes: own.roleHomes,
        });
      }),
    );
  addShared(program.command("status"))
    .description("what runs, how high the chain is, how far the watcher is behind")
    .action(run((context) => runStatus(context)));
  addShared(program.command("doctor"))
    .description("check settings, keys, disk and every part; says what to do about findings")
    .option("--strict", "warnings fail too")
    .action(
      run<SharedOptions & { strict?: boolean }>((context, own) =>
        runDoctor(context, { strict: own.strict === true }),
      ),
    );
  addShared(program.command("migrate"))
    .description("bring the ledger's tables to this version")
    .action(run((context) => runMigrate(context)));
  addShared(program.command("reconcile"))
    .description("compare ledger and chain at one height, tolerance 0; exit 1 on a break")
    .action(run((context) => runReconcile(context)));
  addShared(describeMeshCheck(program.command("mesh-check"))).action(
    run<SharedOptions & MeshCheckOptions>((context, own) => runMeshCheckOfHome(context, own)),
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
      run<SharedOptions & AddTokenOptions>((context, { address, symbol, decimals }) =>
        runAddToken(context, { address, symbol, decimals }),
      ),
    );
  addShared(tokens.command("list"))
    .description("the pinned tokens")
    .action(run((context) => runListTokens(context)));
  addShared(tokens.command("check"))
    .description("hold the list against the contracts and the sidecar; exit 1 when a token fails")
    .action(run((context) => runCheckTokens(context)));
}

function addDepositCommands(program: Command, run: Runner): void {
  const deposits = program.command("deposits").description("deposits and what halts them");
  addShared(deposits.command("list"))
    .description("deposits to an address")
    .requiredOption("--address <address>", "deposit address, 0x hex")
    .action(
      run<SharedOptions & { address: string }>((context, own) => runListDeposits(context, own)),
    );
  addShared(deposits.command("status"))
    .description(
      "how far deposits are booked, and what halts crediting; exit 1 when something does",
    )
    .action(run((context) => runDepositsStatus(context)));
  addShared(deposits.command("resume"))
    .description("go on crediting after the cause of an incident is gone")
    .action(run((context) => runDepositsResume(context)));
}

function addWithdrawalCommands(program: Command, run: Runner): void {
  const withdrawals = program
    .command("withdrawals")
    .description("withdrawals on their way, and the switch that freezes signing");
  addShared(withdrawals.command("list"))
    .description("withdrawals, oldest first; exit 1 while signing is frozen")
    .option("--status <status>", "only in this state")
    .option("--customer <id>", "only of this customer")
    .option("--limit <n>", "rows at most (default 100)")
    .option("--after <position>", "only behind this position")
    .action(
      run<SharedOptions & ListWithdrawalsOptions>((context, own) =>
        runListWithdrawals(context, own),
      ),
    );
  addShared(withdrawals.command("show"))
    .description("everything about one withdrawal")
    .argument("<id>", "id of the withdrawal")
    .action((id: string, own: SharedOptions) =>
      run((context) => runShowWithdrawal(context, id))(own),
    );
  addShared(withdrawals.command("freeze"))
    .description("sign nothing more until release")
    .option("--reason <text>", "why, for the record")
    .action(
      run<SharedOptions & { reason?: string }>((context, own) =>
        runFreezeWithdrawals(context, { reason: own.reason }),
      ),
    );
  addShared(withdrawals.command("release"))
    .description("let signing go on after you looked; receipts are checked first")
    .argument("[id]", "decide about this withdrawal only")
    .option("--paid-by <hash>", "with an id: this mined transaction was its payment")
    .option("--not-paid", "with an id: it was never paid, pay it")
    .option("--accept-foreign", "go on behind transactions that the ledger does not know")
    .action((id: string | undefined, own: SharedOptions & Omit<ReleaseOptions, "id">) =>
      run<SharedOptions & Omit<ReleaseOptions, "id">>((context, { paidBy, ...rest }) => {
        const { notPaid, acceptForeign } = rest;
        return runReleaseWithdrawals(context, { id, paidBy, notPaid, acceptForeign });
      })(own),
    );
}
