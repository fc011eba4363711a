/** What people and programs are shown of a proof of reserves, or of a draft of one. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { bytesToHex } from "../../../chain/hex.js";
import { personalDigest } from "../../../chain/signing/personal-message.js";
import { atokenToToken } from "../../../chain/units.js";
import { amountText } from "../../amount-text.js";
import { type CommandContext, printJson } from "../../command-context.js";
import { AUDIT_EXIT } from "../errors.js";
import type { MadeReserves } from "./make-reserves.js";
import type { UnbookedPayment } from "./settled-books.js";
import { namesOf, type ProvenReserves } from "./verify-reserves.js";

/** Of a proof of reserves that is right, and not enough. */
export const NOT_COVERED = "Proven, and NOT COVERED: more is owed than held.";

/** Of a proof of reserves in the first format. */
export const UNSIGNED_ACCOUNTS =
  "A former release made the proof of reserves: its wallets did not sign for which accounts these " +
  "are, nor of which ledger. Others may have been put to it, or left out: ask for a new one.";

/** Signatures that a file does not have. */
export interface ShownDraft {
  /** Wallets that have not signed; none of a file that is no draft. */
  readonly unsigned: readonly Address[];
  /** What they have to sign. */
  readonly text?: string | undefined;
  readonly textFile?: string | undefined;
}

/** What is shown beside what a file proves. */
export interface ShownWith {
  readonly file: string;
  readonly exitCode: number;
  readonly customers?: number;
  readonly draft?: ShownDraft;
  /** What was made just now; undefined of a file that was there. */
  readonly made?: MadeReserves & { readonly unbooked: readonly UnbookedPayment[] };
}

/**
 * Shows what a file proves.
 * @param proven of a draft: what it will prove
 */
export function show(context: CommandContext, proven: ProvenReserves, shown: ShownWith): void {
  if (context.json) showJson(context, proven, shown);
  else showText(context, proven, shown);
}

function showJson(context: CommandContext, proven: ProvenReserves, shown: ShownWith): void {
  const { file, exitCode, customers, draft, made } = shown;
  const { block, otherLiabilities } = proven;
  printJson(context, {
    ok: exitCode === AUDIT_EXIT.clean,
    file,
    ...(customers === undefined ? {} : { customers }),
    ...(draft === undefined ? {} : draftJson(draft)),
    ...(made === undefined ? {} : madeJson(made)),
    height: block.height,
    blockHash: block.blockHash,
    accounts: proven.accounts,
    wallets: proven.wallets,
    accountsSigned: proven.areAccountsSigned,
    reservesAtoken: proven.reservesAtoken.toString(),
    signedAtoken: proven.signedAtoken.toString(),
    owedAtoken: proven.owedAtoken.toString(),
    otherLiabilities: otherLiabilities.map(({ asset, sumUnits }) => {
      return { asset, units: sumUnits.toString() };
    }),
    liabilitiesRoot: proven.liabilitiesRoot,
    nonce: proven.nonce,
  });
}

function draftJson({ unsigned, text, textFile }: ShownDraft) {
  return {
    unsigned: unsigned.map(toChecksumAddress),
    ...(text === undefined
      ? {}
      : {
          text,
          // For Web3Signer, and for hardware that knows no messages.
          textHex: bytesToHex(Buffer.from(text, "utf8")),
          digest: bytesToHex(personalDigest(text)),
        }),
    ...(textFile === undefined ? {} : { textFile }),
  };
}

function madeJson(made: NonNullable<ShownWith["made"]>) {
  return {
    emptyLeftOut: made.emptyLeftOut,
    unbooked: made.unbooked,
    leftOut: made.leftOut.map(({ asset, units }) => ({ asset, units: units.toString() })),
    coldLeftOut: made.coldLeftOut.map(toChecksumAddress),
    retiredLeftOut: made.retiredLeftOut.map(toChecksumAddress),
    unsignedLeftOut: made.unsignedLeftOut.map(toChecksumAddress),
  };
}

function showText(context: CommandContext, proven: ProvenReserves, shown: ShownWith): void {
  const { block, isCovered, otherLiabilities } = proven;
  const { made, draft } = shown;
  const left = draft?.unsigned.length ?? 0;
  const signs = left === 0 ? "signed" : "sign";
  const rows: readonly (readonly [string, string])[] = [
    ["block", `${block.height}, ${block.blockHash}`],
    ["time", new Date(block.timestampSeconds * 1_000).toISOString()],
    [
      "accounts",
      `${proven.accounts}, of which ${proven.wallets} wallets ${signs}` +
        (left === 0 ? "" : `, and ${proven.wallets - left} have`),
    ],
    ...(made === undefined || made.emptyLeftOut === 0
      ? []
      : [["left out", `${made.emptyLeftOut} deposit addresses that hold nothing`] as const]),
    ["reserves", `${atokenToToken(proven.reservesAtoken)} TOKEN`],
    ["of wallets", `${atokenToToken(proven.signedAtoken)} TOKEN, whose keys ${signs}`],
    [
      "of addresses",
      `${atokenToToken(proven.reservesAtoken - proven.signedAtoken)} TOKEN, which the wallets call ` +
        `deposit addresses of the exchange: no key of theirs ${left === 0 ? "signed" : "signs"}`,
    ],
    ["owed", `${atokenToToken(proven.owedAtoken)} TOKEN`],
    ["liabilities", proven.liabilitiesRoot],
    ["nonce", proven.nonce],
  ];
  for (const [name, value] of rows) context.print(`  ${name.padEnd(14)}${value}`);
  for (const { asset, sumUnits } of otherLiabilities) {
    context.print(`  owed besides  ${amountText(asset, sumUnits)}, without a proof of reserves`);
  }
  if (!proven.areAccountsSigned) context.print(UNSIGNED_ACCOUNTS);
  if (draft !== undefined && left > 0) showDraft(context, draft, isCovered);
  else context.print(isCovered ? "Proven, and covered." : NOT_COVERED);
}

function showDraft(
  context: CommandContext,
  { unsigned, text = "", textFile }: ShownDraft,
  isCovered: boolean,
): void {
  context.print(`  digest        ${bytesToHex(personalDigest(text))}`);
  const where = textFile === undefined ? "" : `, which is all of ${textFile}`;
  context.print(`What each of them signs (EIP-191), without a line end behind it${where}:`);
  context.print("");
  for (const line of text.split("\n")) context.print(line);
  context.print("");
  if (!isCovered) context.print("NOT COVERED: more is owed than held.");
  context.print(`A draft that proves nothing: NOT signed by ${namesOf(unsigned)}.`);
}
