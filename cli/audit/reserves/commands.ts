/** `causeway audit reserves`, `audit sign-reserves`, `verify reserves` and `verify liability`. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import type { WalletKey } from "../../../chain/signing/keystore.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import { passphraseBeside, readHomeWallets } from "../../../ledger/wallets/home-wallets.js";
import { readWalletKey } from "../../../ledger/wallets/wallet-key.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { amountText } from "../../amount-text.js";
import { type CommandContext, printJson } from "../../command-context.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { sentenceOf } from "../../errors.js";
import { progressLines } from "../../progress.js";
import {
  type ProofSourceOptions,
  readProofFile,
  withProofSource,
} from "../balance/proof-source.js";
import { AUDIT_EXIT, AuditError } from "../errors.js";
import { badOption, readAddressOption, readGenesisOption } from "../options.js";
import {
  encodeLiability,
  MAX_LIABILITY_BYTES,
  parseLiability,
  verifyLiability,
} from "./liability-file.js";
import { type LeftOut, type MadeReserves, makeReserves } from "./make-reserves.js";
import { parseReserves, readReservesContents, readReservesFile } from "./read-reserves.js";
import { encodeReserves, type ReservesFile, reservesText } from "./reserves-file.js";
import { readSettledBooks, type UnbookedPayment } from "./settled-books.js";
import { NOT_COVERED, show, UNSIGNED_ACCOUNTS } from "./shown-reserves.js";
import { addSignatures, assertDraft, readSignatureOption } from "./sign-reserves.js";
import {
  assertPartOf,
  type ProvenReserves,
  verifyDraft,
  verifyReserves,
} from "./verify-reserves.js";
import { assertFree, textBeside, writeReserves, writeSigned } from "./write-reserves.js";

/** Flags of `audit reserves`, as typed. */
export interface ReservesOptions extends ProofSourceOptions {
  readonly out: string;
  /** Folder that takes a file for each customer. */
  readonly customers?: string;
  /** Chosen by the auditor. */
  readonly nonce?: string;
  /** Further wallets' keystores; the passphrase of each lies beside it (`passphraseBeside`). */
  readonly keystore?: readonly string[];
  /** Wallets that sign nothing and are not in the proof. */
  readonly leaveOut?: readonly string[];
  /** Wallets that are in the proof and whose signatures `audit sign-reserves` puts to it. */
  readonly signElsewhere?: readonly string[];
}

/** Flags of `audit sign-reserves`, as typed. */
export interface SignReservesOptions {
  /** `ADDRESS=0x...` each; without any, what is to be signed is shown. */
  readonly signature?: readonly string[];
  readonly out?: string;
  readonly genesis?: string;
}

/** Flags of `verify reserves` and `verify liability`, as typed. */
export interface VerifyReservesOptions {
  readonly genesis?: string;
}

/** Flags of `verify liability`, as typed. */
export interface VerifyLiabilityOptions extends VerifyReservesOptions {
  /** The published proof of reserves that the liability must be part of. */
  readonly reserves?: string;
}

/**
 * Makes the file, checks it as a stranger would, and writes it with those of the customers. Where wallets
 * sign elsewhere it is a draft, and what they have to sign lies beside it.
 */
export async function runAuditReserves(
  context: CommandContext,
  options: ReservesOptions,
  warn: (line: string) => void,
): Promise<number> {
  return guarded("audit", { context, warn }, async () => {
    const nonce = options.nonce ?? new Date().toISOString();
    const progress = progressPrinter((line) => warn(`audit: ${line}`));
    if (!/^[\x20-\x7e]{1,100}$/.test(nonce)) throw badOption("--nonce", nonce);
    const file = resolve(options.out);
    const leaveOut = (options.leaveOut ?? []).map((text) => readAddressOption("--leave-out", text));
    const elsewhere = (options.signElsewhere ?? []).map((text) =>
      readAddressOption("--sign-elsewhere", text),
    );
    assertFree(file);
    if (elsewhere.length > 0) assertFree(textBeside(file));
    const genesis = readGenesisOption(options.genesis, context.home);
    const keys = { ...readKeys(context.home, options.keystore ?? []), leaveOut, elsewhere };
    const made = await withLedgerAlone(context, ({ database }) =>
      withProofSource(context, options, async (source) => {
        const { books, unbooked } = await readSettledBooks({ database, ...source }, source);
        const onProgress = progress("accounts are collected");
        const parts = { source, books, ...keys, nonce, onProgress };
        return { ...(await makeReserves(parts)), unbooked };
      }),
    );
    const written = await parseReserves(encodeReserves(made.contents));
    const verified = await verifyDraft(written, genesis, {
      signal: context.signal,
      onProgress: progress("accounts are checked"),
    });
    for (const { file: make } of made.liabilities) {
      verifyLiability(parseLiability(encodeLiability(make())));
      const pause = breathe(context.signal);
      if (pause !== undefined) await pause;
    }
    const text = verified.unsigned.length === 0 ? undefined : reservesText(written);
    const places = { out: file, customers: options.customers };
    const onProgress = progress("files are written");
    await writeReserves(made, places, { signal: context.signal, onProgress, text });
    const customers = made.liabilities.length;
    const textFile = text === undefined ? undefined : textBeside(file);
    const draft = { unsigned: verified.unsigned, text, textFile };
    const exitCode = exitCodeOf(verified.whenSigned);
    show(context, verified.whenSigned, { file, customers, exitCode, draft, made });
    for (const line of leftOutLines(made)) warn(`audit: ${line}`);
    return exitCode;
  });
}

/**
 * Puts signatures to a draft, and writes the proof, or the next draft where some are missing still. Without
 * any it shows what is to be signed.
 */
export async function runSignReserves(
  context: CommandContext,
  draft: string,
  options: SignReservesOptions,
  warn: (line: string) => void,
): Promise<number> {
  return guarded("audit", { context, warn }, async () => {
    const given = (options.signature ?? []).map(readSignatureOption);
    const out = options.out === undefined ? undefined : resolve(options.out);
    if (given.length > 0 !== (out !== undefined)) throw new AuditError("BAD_OPTION", TOGETHER);
    if (out !== undefined) assertFree(out);
    const genesis = readGenesisOption(options.genesis, context.home);
    const contents = await readReservesContents(draft);
    assertDraft(contents, draft);
    const signed = addSignatures(contents, given);
    const written = await parseReserves(encodeReserves(signed));
    const { signal } = context;
    const onProgress = progressPrinter((line) => warn(`audit: ${line}`))("accounts are checked");
    const { whenSigned, unsigned } = await verifyDraft(written, genesis, { signal, onProgress });
    const isDraft = unsigned.length > 0;
    if (out !== undefined) await writeSigned(signed, { out, isDraft }, { signal });
    // What somebody wanted finished, and is not, is no success; what was to be shown is.
    const exitCode = isDraft && out !== undefined ? AUDIT_EXIT.cannotRun : exitCodeOf(whenSigned);
    const text = isDraft ? reservesText(written) : undefined;
    show(context, whenSigned, { file: out ?? draft, exitCode, draft: { unsigned, text } });
    return exitCode;
  });
}

const TOGETHER =
  "Signatures make another file: name it with --out FILE beside --signature, and neither of them to see " +
  "what is to be signed.";

function exitCodeOf({ isCovered }: ProvenReserves): number {
  return isCovered ? AUDIT_EXIT.clean : AUDIT_EXIT.difference;
}

/** Checks a proof of reserves against the genesis. */
export async function runVerifyReserves(
  context: CommandContext,
  file: string,
  options: VerifyReservesOptions,
  warn: (line: string) => void,
): Promise<number> {
  return guarded("verify", { context, warn }, async () => {
    const { proven } = await readReserves(context, { ...options, file }, warn);
    const exitCode = exitCodeOf(proven);
    show(context, proven, { file, exitCode });
    return exitCode;
  });
}

function tokenUnprovenText(asset: string): string {
  return `The reserves of ${asset} are not proven: a proof of reserves is about ${NATIVE_ASSET} alone.`;
}

/**
 * Checks a customer's file, and that it is of a proof of reserves where one is named: one that does not cover
 * what is owed is a difference here, too, to whom the chain's own coin is owed.
 */
export async function runVerifyLiability(
  context: CommandContext,
  file: string,
  options: VerifyLiabilityOptions,
  warn: (line: string) => void,
): Promise<number> {
  return guarded("verify", { context, warn }, async () => {
    const liability = parseLiability(await readProofFile(file, MAX_LIABILITY_BYTES));
    const { root, liabilitiesRoot } = verifyLiability(liability);
    const { asset, customerId, units, height, blockHash } = liability;
    const { reserves } = options;
    const of =
      reserves === undefined
        ? undefined
        : await readReserves(context, { ...options, file: reserves }, warn);
    if (of !== undefined) assertPartOf(liability, of);
    // Without a proof of reserves, the file says nothing of what is held; with one, nothing of tokens.
    const isToken = asset !== NATIVE_ASSET;
    const isCovered = isToken ? null : (of?.proven.isCovered ?? null);
    const accountsSigned = of?.proven.areAccountsSigned ?? null;
    if (context.json) {
      const shown = { asset, customerId, units: units.toString(), height, blockHash };
      const total = root.sumUnits.toString();
      printJson(context, {
        ok: isCovered !== false,
        ...shown,
        total,
        liabilitiesRoot,
        reserves: reserves ?? null,
        isCovered,
        accountsSigned,
      });
    } else {
      context.print(`  customer      ${customerId}`);
      context.print(`  owed          ${amountText(asset, units)}`);
      context.print(`  of            ${amountText(asset, root.sumUnits)}, owed to all customers`);
      context.print(`  block         ${height}, ${blockHash}`);
      context.print(`  liabilities   ${liabilitiesRoot}`);
      if (accountsSigned === false) context.print(UNSIGNED_ACCOUNTS);
      context.print(
        reserves === undefined
          ? "It is in that sum. Whether wallets signed for the sum and the block, only the published " +
              "proof of reserves shows: compare the root with it, or name its file."
          : "It is in the sum that the wallets signed for.",
      );
      if (isToken) context.print(tokenUnprovenText(asset));
      if (isCovered === false) context.print(NOT_COVERED);
    }
    return isCovered === false ? AUDIT_EXIT.difference : AUDIT_EXIT.clean;
  });
}

/** A proof of reserves from its file, verified. */
async function readReserves(
  context: CommandContext,
  options: VerifyReservesOptions & { readonly file: string },
  warn: (line: string) => void,
): Promise<{ readonly reserves: ReservesFile; readonly proven: ProvenReserves }> {
  const genesis = readGenesisOption(options.genesis, context.home);
  const reserves = await readReservesFile(options.file);
  const onProgress = progressPrinter((line) => warn(`verify: ${line}`))("checked");
  const { signal } = context;
  return { reserves, proven: await verifyReserves(reserves, genesis, { signal, onProgress }) };
}

/** Says how far it is. */
function progressPrinter(say: (line: string) => void) {
  const sayNow = progressLines(say);
  return (what: string) => (done: number, of: number) => sayNow(() => `${done} of ${of} ${what}`);
}

/** The home's hot wallets, where their keys lie here, and those that are named. */
function readKeys(
  home: string,
  keystores: readonly string[],
): { readonly keys: readonly WalletKey[]; readonly named: readonly WalletKey[] } {
  const ofHome = readHomeWallets(home).filter(({ passphrase }) => existsSync(passphrase));
  return {
    keys: ofHome.map(readWalletKey),
    named: keystores.map((keystore) =>
      readWalletKey({ keystore, passphrase: passphraseBeside(keystore) }),
    ),
  };
}

/** Of a token that is in no proof. Its line must stay: the watcher credits nothing without it. */
export function leftOutText({ asset, units }: LeftOut): string {
  return (
    `${units} units of ${asset} are owed, more than a token can have (2^256 - 1): it is not in the ` +
    "proof, and its customers have no file. What its contract claims is not to be believed: its line " +
    "stays in tokens.json, and the books are to be corrected (causeway ledger adjust, with --asset " +
    `${asset}).`
  );
}

/** Payments that are named one by one. */
const MAX_NAMED = 20;

/** What is not in the proof, and what of it is not booked. */
function leftOutLines(
  made: MadeReserves & { readonly unbooked: readonly UnbookedPayment[] },
): readonly string[] {
  return [
    ...unbookedLines(made.unbooked),
    ...made.leftOut.map(leftOutText),
    ...made.coldLeftOut.map((address) => unsignedText(address, "cold storage")),
    ...made.retiredLeftOut.map((address) =>
      unsignedText(address, "a wallet that was retired since"),
    ),
    ...made.unsignedLeftOut.map(
      (address) => `${toChecksumAddress(address)} is left out: what it holds is not in the proof.`,
    ),
  ];
}

function unbookedLines(unbooked: readonly UnbookedPayment[]): readonly string[] {
  const named = unbooked.slice(0, MAX_NAMED).map(({ withdrawalId, height }) => {
    return (
      `withdrawal ${withdrawalId} was paid in block ${height} and is not booked: what it paid is owed ` +
      `still in this proof. When it is booked (causeway withdrawals show ${withdrawalId}), make another one.`
    );
  });
  const more = unbooked.length - named.length;
  return more === 0 ? named : [...named, `${more} more withdrawals are paid and not booked.`];
}

function unsignedText(address: Address, what: string): string {
  return (
    `${toChecksumAddress(address)} is ${what}, and its key is not here: what it holds in this block is ` +
    "not in the proof. With --keystore FILE or --sign-elsewhere ADDRESS it signs, and is."
  );
}

/**
 * Says what hinders; a file that proves nothing gives 1, with a document as of `verify balance`, what
 * cannot be made or read 2.
 */
async function guarded(
  name: "audit" | "verify",
  told: { readonly context: CommandContext; readonly warn: (line: string) => void },
  work: () => Promise<number>,
): Promise<number> {
  const { context, warn } = told;
  try {
    return await work();
  } catch (error) {
    const isFalse = error instanceof AuditError && error.code === "NOT_PROVEN";
    if (isFalse && context.json) printJson(context, { ok: false, reason: error.message });
    warn(`${name}: ${sentenceOf(error)}`);
    return isFalse ? AUDIT_EXIT.difference : AUDIT_EXIT.cannotRun;
  }
}
