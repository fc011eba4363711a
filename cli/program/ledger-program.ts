/** The `causeway ledger` commands: what persons decide about the books, each with its flags. */
import type { Command } from "commander";
import type { CommandContext } from "../command-context.js";
import type { DecisionOptions } from "../commands/ledger-decisions.js";
import type { StoredTerms } from "../../ledger/decisions/decision.js";
import { CliError } from "../errors.js";
import {
  addDecision,
  addShared,
  judging,
  type Runner,
  type SharedOptions,
} from "../shared-options.js";

type Flags = SharedOptions & DecisionOptions;

/** Adds the group to the program. */
export function addLedgerCommands(program: Command, run: Runner): void {
  const ledger = program
    .command("ledger")
    .description("what persons decide about the books, each decision kept with its reason");
  judging(addShared(ledger.command("open")))
    .description("what waits for a person; exit 1 when something does")
    .action(
      run(async (context) =>
        (await import("../commands/ledger-decisions.js")).runOpenMatters(context),
      ),
    );
  addShared(ledger.command("decisions"))
    .description("what was decided, by whom and why")
    .action(
      run(async (context) =>
        (await import("../commands/ledger-decisions.js")).runListDecisions(context),
      ),
    );
  addPaymentDecisions(ledger, run);
  addBookDecisions(ledger, run);
  addProposals(ledger, run, "approve", "carry out what another person proposed");
  addProposals(ledger, run, "refuse", "refuse a proposal");
}

function addPaymentDecisions(ledger: Command, run: Runner): void {
  addDecision(ledger.command("link-payment"))
    .description("a recovered payment was the payment of a request")
    .argument("<hash>", "transaction of the hot wallet")
    .option("--withdrawal <id>", "the request, where the ledger has it")
    .option("--customer <id>", "else: whose request it was,")
    .option("--idempotency-key <key>", "and its key, so that a repeat gets its answer")
    .action((hash: string, own: Flags & LinkFlags) => decide(run, own, () => linkTerms(hash, own)));
  addDecision(ledger.command("write-off-payment"))
    .description("nobody is found whose payment a recovered one was: the exchange bears it")
    .argument("<hash>", "transaction of the hot wallet")
    .action((hash: string, own: Flags) =>
      decide(run, own, () => ({ action: "write-off-payment", hash })),
    );
  addDecision(ledger.command("pay-withdrawal"))
    .description("a request that froze because it equals a recovered payment was another one")
    .argument("<id>", "id of the withdrawal")
    .action((withdrawalId: string, own: Flags) =>
      decide(run, own, () => ({ action: "pay-withdrawal", withdrawalId })),
    );
}

function addBookDecisions(ledger: Command, run: Runner): void {
  addDecision(ledger.command("assign-address"))
    .description("whose an address is that a recovery found")
    .argument("<address>", "deposit address, 0x hex")
    .requiredOption("--customer <id>", "the customer")
    .option("--with-deposits", "its deposits in suspense are the customer's, too")
    .action((address: string, own: Flags & CustomerFlag & { withDeposits?: boolean }) =>
      decide(run, own, () => ({
        action: "assign-address",
        address,
        customerId: own.customer,
        withDeposits: own.withDeposits === true,
      })),
    );
  addDecision(ledger.command("assign-deposit"))
    .description("a deposit in suspense is a customer's")
    .argument("<id>", "id of the deposit")
    .requiredOption("--customer <id>", "the customer")
    .action((depositId: string, own: Flags & CustomerFlag) =>
      decide(run, own, () => ({ action: "assign-deposit", depositId, customerId: own.customer })),
    );
  addDecision(ledger.command("decide-transfer"))
    .description("a token's payment that was mined without its transfer: it paid, or it did not")
    .argument("<id>", "id of the frozen withdrawal")
    .option("--paid", "the destination has it: the withdrawal is settled")
    .option("--not-paid", "nothing moved: the withdrawal fails and its hold goes back")
    .action((withdrawalId: string, own: Flags & { paid?: boolean; notPaid?: boolean }) =>
      decide(run, own, () => transferTerms(withdrawalId, own)),
    );
  addDecision(ledger.command("accept-remined"))
    .description("who bears a payment that a chain mined again with another outcome")
    .argument("<name>", "as ledger open names it")
    .requiredOption("--account <code>", "liability:customer:<id>, expense:write_off or another")
    .action((name: string, own: Flags & { account: string }) =>
      decide(run, own, () => ({ action: "accept-remined", name, account: own.account })),
    );
  addDecision(ledger.command("accept-outflow"))
    .description("coins that left one of our addresses unasked: a break, a sweep, a rotation")
    .argument("<hash>", "the transaction that reconcile names")
    .option("--account <code>", "what explains them (default asset:break)", "asset:break")
    .action((hash: string, own: Flags & { account: string }) =>
      decide(run, own, () => ({ action: "accept-outflow", hash, account: own.account })),
    );
  addDecision(ledger.command("adjust"))
    .description("any other correction, such as an opening balance or a release from suspense")
    .requiredOption("--key <key>", "natural key: the same correction is booked once")
    .requiredOption(
      "--debit <code>",
      "asset or expense that rises, or liability or revenue that falls",
    )
    .requiredOption(
      "--credit <code>",
      "liability (such as a customer's) or revenue that rises, or asset or expense that falls",
    )
    .requiredOption("--amount-atoken <n>", "whole atoken, or units of the token")
    .option("--asset <symbol>", "a token; coins without it")
    .option("--tx <hash>", "transaction that proves it")
    .option("--block <n>", "block from which on it counts")
    .option("--address <address>", "deposit address that is meant")
    .option("--deposit <id>", "deposit in suspense whose coins are taken")
    .option("--withdrawal <id>", "frozen request that ends with it: what it held is taken at once")
    .action((own: Flags & AdjustFlags) => decide(run, own, () => adjustTerms(own)));
}

function addProposals(
  ledger: Command,
  run: Runner,
  name: "approve" | "refuse",
  description: string,
): void {
  addShared(ledger.command(name))
    .description(description)
    .argument("<number>", "the decision's number")
    .option("--operator <name>", "who decides, for the record (else the user)")
    .action((id: string, own: SharedOptions & { operator?: string }) =>
      run(async (context: CommandContext) => {
        const { runSettleProposal } = await import("../commands/ledger-decisions.js");
        const { operator } = own;
        return runSettleProposal(context, id, { operator, isApproved: name === "approve" });
      })(own),
    );
}

function decide(run: Runner, own: Flags, terms: () => StoredTerms): Promise<void> {
  return run<Flags>(async (context, { reason, operator }) => {
    const { runDecide } = await import("../commands/ledger-decisions.js");
    return runDecide(context, terms(), { reason, operator });
  })(own);
}

interface CustomerFlag {
  readonly customer: string;
}

interface LinkFlags {
  readonly withdrawal?: string;
  readonly customer?: string;
  readonly idempotencyKey?: string;
}

function linkTerms(hash: string, own: LinkFlags): StoredTerms {
  const { withdrawal, customer, idempotencyKey } = own;
  if (withdrawal === undefined) {
    // What is missing is refused where terms are parsed.
    const request = { customerId: customer ?? "", idempotencyKey: idempotencyKey ?? "" };
    return { action: "claim-payment", hash, ...request };
  }
  if (customer === undefined && idempotencyKey === undefined) {
    return { action: "link-payment", hash, withdrawalId: withdrawal };
  }
  // Whose the request is the ledger knows: a customer who is named beside it may be another one.
  throw new CliError("USAGE", "say --withdrawal, or --customer and --idempotency-key.");
}

function transferTerms(
  withdrawalId: string,
  { paid = false, notPaid = false }: { readonly paid?: boolean; readonly notPaid?: boolean },
): StoredTerms {
  if (paid === notPaid) throw new CliError("USAGE", "say --paid or --not-paid.");
  return { action: "decide-transfer", withdrawalId, isPaid: paid };
}

interface AdjustFlags {
  readonly key: string;
  readonly debit: string;
  readonly credit: string;
  readonly asset?: string;
  readonly amountAtoken: string;
  readonly tx?: string;
  readonly block?: string;
  readonly address?: string;
  readonly deposit?: string;
  readonly withdrawal?: string;
}

function adjustTerms(own: AdjustFlags): StoredTerms {
  const { tx: hash, block, deposit: depositId, key, debit, credit, asset } = own;
  const { amountAtoken, address, withdrawal: withdrawalId } = own;
  const height = block === undefined ? undefined : heightOf(block);
  const sides = { debit, credit, asset, amountAtoken };
  return { action: "adjust", key, ...sides, hash, height, address, depositId, withdrawalId };
}

/** Digits alone: an empty text, as of a variable that was never set, is no block 0. */
function heightOf(text: string): number {
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  throw new CliError("USAGE", `--block must be a whole number, not "${text}".`);
}
