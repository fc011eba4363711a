/** The commands about the ledger's own evidence, each with its flags. */
import type { Command } from "commander";
import { addShared, type Runner, type SharedOptions } from "../../shared-options.js";
import type {
  ReservesOptions,
  SignReservesOptions,
  VerifyLiabilityOptions,
  VerifyReservesOptions,
} from "../reserves/commands.js";
import type { StatementOptions } from "../statement/command.js";
import type { VerifyLedgerOptions } from "./commands.js";

/** Where warnings go. */
export type Warn = (line: string) => void;

/** Adds commands below `audit` and `verify`. */
export function addLedgerAudits(
  groups: { readonly audit: Command; readonly verify: Command },
  run: Runner,
  warn: Warn,
): void {
  addShared(groups.audit.command("export"))
    .description(
      "write the whole ledger to a file: every row with its link in the chain of hashes, and the " +
        "balances; JSON lines, for `verify ledger` and for programs of others",
    )
    .requiredOption("--out <file>", "new file, mode 600")
    .action(
      run<SharedOptions & { out: string }>(async (context, own) =>
        (await import("./commands.js")).runExportLedger(context, own, warn),
      ),
    );
  addShared(groups.audit.command("statement"))
    .description(
      "a customer's statement as JSON and CSV: opening, movements with what stands behind them, " +
        "closing; with the SHA-256 of both files",
    )
    .argument("<customer>", "the customer's identifier")
    .requiredOption("--from <date>", "first day, or a time of RFC 3339")
    .requiredOption("--to <date>", "the day behind the last one, or a time")
    .option(
      "--out <name>",
      "files NAME.json, NAME.csv, NAME.sha256 (else by customer and days, in the working folder, " +
        "which for npm is the clone)",
    )
    .action((customer: string, own: SharedOptions & StatementOptions) =>
      run(async (context) =>
        (await import("../statement/command.js")).runStatement(context, customer, own),
      )(own),
    );
  addShared(groups.verify.command("ledger"))
    .description(
      "check a file of `audit export`: the chain of hashes, double entry, balances from postings; " +
        "names the first row that was changed",
    )
    .argument("<file>", "the file")
    .option("--head <hash>", "a link's hash that was written down earlier and must be in the chain")
    .addHelpText(
      "after",
      "\nExit code: 0 nothing was changed, 1 something was, 2 it cannot be read.",
    )
    .action((file: string, own: SharedOptions & VerifyLedgerOptions) =>
      run(async (context) =>
        (await import("./commands.js")).runVerifyLedger(context, file, own, warn),
      )(own),
    );
  addReserveAudits(groups, run, warn);
}

function addReserveAudits(
  groups: { readonly audit: Command; readonly verify: Command },
  run: Runner,
  warn: Warn,
): void {
  addShared(groups.audit.command("reserves"))
    .description(
      "write a file that proves what the exchange holds at a block against what it owes: proofs of " +
        "all accounts, a tree of liabilities, signatures of the wallets",
    )
    .requiredOption("--out <file>", "file to write, for everybody")
    .option("--height <height>", 'a booked block, or "head": the last booked one', "head")
    .option("--customers <dir>", "also write a file for each customer into this folder")
    .option("--nonce <text>", "what the auditor chose, so that signatures are of his day")
    .option(
      "--keystore <file...>",
      "keys of further wallets and of cold storage, each with its .passphrase beside it",
    )
    .option(
      "--leave-out <address...>",
      "wallets that sign nothing, as those whose keys are lost: nothing that they hold is proven",
    )
    .option(
      "--sign-elsewhere <address...>",
      "wallets whose keys are not here, as those of an HSM or with Web3Signer: --out is a draft, which " +
        "proves nothing until they have signed FILE.txt beside it (`audit sign-reserves`)",
    )
    .option("--node <url>", "JSON-RPC of the node (else the home's)")
    .option("--consensus <url>", "consensus RPC of the node (else the home's)")
    .option("--genesis <file>", "genesis of the chain (else the home's)")
    .addHelpText("after", "\nExit code: 0 covered, 1 more is owed than held, 2 it cannot be made.")
    .action(
      run<SharedOptions & ReservesOptions>(async (context, own) =>
        (await import("../reserves/commands.js")).runAuditReserves(context, own, warn),
      ),
    );
  addSigning(groups.audit, run, warn);
  addShared(groups.verify.command("reserves"))
    .description("check a file of `audit reserves` from the genesis on, without any network")
    .argument("<file>", "the file")
    .option("--genesis <file>", "genesis of the chain (else the home's)")
    .action((file: string, own: SharedOptions & VerifyReservesOptions) =>
      run(async (context) =>
        (await import("../reserves/commands.js")).runVerifyReserves(context, file, own, warn),
      )(own),
    );
  addShared(groups.verify.command("liability"))
    .description("check a customer's file: what is owed to them is in the sum that wallets signed")
    .argument("<file>", "the file")
    .option("--reserves <file>", "the published proof of reserves that it must be part of")
    .option("--genesis <file>", "genesis of the chain (else the home's)")
    .action((file: string, own: SharedOptions & VerifyLiabilityOptions) =>
      run(async (context) =>
        (await import("../reserves/commands.js")).runVerifyLiability(context, file, own, warn),
      )(own),
    );
}

function addSigning(audit: Command, run: Runner, warn: Warn): void {
  addShared(audit.command("sign-reserves"))
    .description(
      "put signatures of wallets to a draft of `audit reserves --sign-elsewhere`; without any, show what " +
        "they have to sign; offline",
    )
    .argument("<draft>", "the draft")
    .option(
      "--signature <address=0x...>",
      "wallets' signatures of that text (EIP-191), or r and s of its digest",
    )
    .option(
      "--out <file>",
      "file to write: the proof, or a draft where signatures are missing still",
    )
    .option("--genesis <file>", "genesis of the chain (else the home's)")
    .addHelpText(
      "after",
      "\nExit code: 0 signed and covered, 1 more is owed than held, or the draft is false, 2 a signature " +
        "is refused or missing, or it cannot be made.",
    )
    .action((draft: string, own: SharedOptions & SignReservesOptions) =>
      run(async (context) =>
        (await import("../reserves/commands.js")).runSignReserves(context, draft, own, warn),
      )(own),
    );
}
