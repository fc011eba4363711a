/** `causeway audit export` and `causeway verify ledger`: the books for somebody outside. */
import { resolve } from "node:path";
import { cleanForeignText } from "../../../chain/evm/foreign-text.js";
import { linkAll } from "../../../ledger/tamper/chainer.js";
import {
  beginLook,
  readExportHead,
  readKeptBalances,
  readKeptDecisions,
  readKeptDeposits,
  readKeptWallets,
  readKeptWithdrawals,
  readLinks,
  readUnlinkedRows,
} from "../../../ledger/tamper/read-export.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { type CommandContext, printJson, printLongJson } from "../../command-context.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { assertOwnLedger } from "../../ledger/own-ledger.js";
import { sentenceOf } from "../../errors.js";
import { progressLines } from "../../progress.js";
import { shellWord } from "../../shell-word.js";
import { AUDIT_EXIT, AuditError } from "../errors.js";
import { underWay } from "../json-lines.js";
import { badOption } from "../options.js";
import { EXPORT_FORMAT, type ExportLine, readExport, writeExport } from "./export-file.js";
import { type LedgerVerdict, verifyLedger } from "./verify-ledger.js";

/** Longest line about a row of the export; all texts in it are of whoever wrote it. */
const MAX_LINE = 4_000;

/** Flags of `verify ledger`, as typed. */
export interface VerifyLedgerOptions {
  /** Hash of a link that was written down earlier. */
  readonly head?: string;
}

/** Links what waits for its link, and writes everything to a new file. */
export async function runExportLedger(
  context: CommandContext,
  { out }: { readonly out: string },
  warn: (line: string) => void,
): Promise<number> {
  const file = resolve(out);
  try {
    return await withLedgerAlone(context, async ({ database, identity }) => {
      assertOwnLedger(context.home, identity.genesisHash);
      await linkAll(database, context);
      const written = await database.transaction(async (tx) => {
        await beginLook(tx);
        const { head } = await readExportHead(tx);
        const tell = (count: string) => warn(`audit: ${count} are written`);
        const lines = followed(exportLines(tx), context, tell);
        return { head, ...(await writeExport(file, lines)) };
      });
      const { head, lines, sha256 } = written;
      if (context.json)
        printJson(context, { ok: true, file, links: head.n, head: head.hash, lines, sha256 });
      else {
        context.print(`${lines} lines in ${file}, SHA-256 ${sha256}.`);
        context.print(`The chain ends at link ${head.n}: ${head.hash}. Write that down elsewhere.`);
        context.print("Anybody checks it, offline:");
        context.print(`  npm run causeway -- verify ledger ${shellWord(file)}`);
      }
      return AUDIT_EXIT.clean;
    });
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof AuditError)) throw error;
    warn(`audit: ${sentenceOf(error)}`);
    return AUDIT_EXIT.cannotRun;
  }
}

/** Lines until the command is stopped, with a word now and then about how many there were. */
function followed<Line>(
  lines: AsyncIterable<Line>,
  { signal }: Pick<CommandContext, "signal">,
  tell: (count: string) => void,
): AsyncGenerator<Line> {
  const say = progressLines(tell);
  return underWay(lines, { signal, tell: (count) => say(() => `${count} lines`) });
}

async function* exportLines(tx: Sql): AsyncGenerator<Exclude<ExportLine, { type: "end" }>> {
  const { head, ...facts } = await readExportHead(tx);
  const { ledgerId, genesisHash, chainId, deposits, withdrawals, wallets, decisions } = facts;
  yield {
    type: "ledger",
    format: EXPORT_FORMAT,
    ledgerId,
    genesisHash,
    chainId,
    exportedAt: new Date().toISOString(),
    links: head.n,
    head: head.hash,
    deposits,
    withdrawals,
    wallets,
    decisions,
  };
  for await (const { row, ...link } of readLinks(tx)) {
    yield { type: "link", ...link, row: row === null ? null : [...row] };
  }
  for await (const { kind, key, isLate, row } of readUnlinkedRows(tx)) {
    yield { type: "unlinked", kind, key, isLate, row: [...row] };
  }
  for await (const balance of readKeptBalances(tx)) yield { type: "balance", ...balance };
  for await (const deposit of readKeptDeposits(tx)) yield { type: "deposit", ...deposit };
  for await (const one of readKeptWithdrawals(tx)) yield { type: "withdrawal", ...one };
  for await (const wallet of readKeptWallets(tx)) yield { type: "wallet", ...wallet };
  for await (const decision of readKeptDecisions(tx)) yield { type: "decision", ...decision };
}

/** Checks an export; exit 1 when something does not hold, with what it is. */
export async function runVerifyLedger(
  context: CommandContext,
  file: string,
  { head }: VerifyLedgerOptions,
  warn: (line: string) => void,
): Promise<number> {
  try {
    if (head !== undefined && !/^[0-9a-f]{64}$/.test(head)) throw badOption("--head", head);
    const tell = (count: string) => warn(`verify: ${count} are checked`);
    const lines = followed(readExport(file), context, tell);
    const verdict = await verifyLedger(lines, head);
    const ok = verdict.faults.length === 0;
    if (context.json) {
      const { accounts, ...facts } = verdict;
      await printLongJson(
        context,
        { ok, ...facts },
        { member: "accounts", entries: textsOf(accounts) },
      );
    } else {
      for (const line of formatVerdict(verdict, head)) {
        context.print(cleanForeignText(line, MAX_LINE));
      }
    }
    return ok ? AUDIT_EXIT.clean : AUDIT_EXIT.difference;
  } catch (error) {
    if (!(error instanceof AuditError)) throw error;
    warn(`verify: ${sentenceOf(error)}`);
    return AUDIT_EXIT.cannotRun;
  }
}

function* textsOf(accounts: LedgerVerdict["accounts"]): Generator<readonly [string, string]> {
  for (const [name, units] of accounts) yield [name, units.toString()];
}

/** What a file cannot show by itself. */
const NO_HEAD =
  "none given: a chain that was written anew as a whole, or cut short, would hold, too; give one that was " +
  "written down earlier with --head";

/** What rows without a link stand on. */
const NO_LINK =
  "the exporter's word alone says that they are new, and what they say is held by no hash; a later export " +
  "has links for them";

function formatVerdict(verdict: LedgerVerdict, knownHead: string | undefined): string[] {
  const { rows, faults, waiting } = verdict;
  const facts: readonly (readonly [string, string])[] = [
    ["ledger", verdict.ledgerId],
    ["links", `${verdict.links}, the last one ${verdict.head}`],
    ["known head", knownHead ?? NO_HEAD],
    ["entries", `${rows.entry}, with ${verdict.postings} postings`],
    ["events", rows.event.toString()],
    [
      "deposits",
      verdict.areDepositsTold
        ? rows.deposit.toString()
        : `${rows.deposit}, and not whose they are, as in exports of former releases`,
    ],
    [
      "withdrawals",
      verdict.areWithdrawalsTold
        ? rows.withdrawal.toString()
        : `${rows.withdrawal}, and not what became of them, as in exports of former releases`,
    ],
    [
      "persons",
      verdict.arePersonsTold
        ? `${rows.proposal} decisions, ${rows.wallet} wallets`
        : "neither decisions nor wallets, as in exports of former releases",
    ],
    ["balances", `${verdict.balances} customers and assets`],
    ...(waiting > 0 ? [["not linked yet", `${waiting}: ${NO_LINK}`] as const] : []),
  ];
  return [
    ...facts.map(([name, value]) => `  ${name.padEnd(16)}${value}`),
    ...(faults.length === 0
      ? ["Nothing was changed: the chain holds, and the balances follow from the postings."]
      : faults.map((fault, index) => `${index === 0 ? "TAMPERED" : "and"}: ${fault}`)),
  ];
}
