/** `causeway audit reserves`, `verify reserves` and `verify liability`. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { ChainError } from "../../../chain/errors.js";
import { decryptKeystore, type WalletKey } from "../../../chain/signing/keystore.js";
import { atokenToToken } from "../../../chain/units.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import { passphraseBeside, readHomeWallets } from "../../../ledger/wallets/home-wallets.js";
import { readPassphraseFile, readSecretFile } from "../../../runtime/config/secret-file.js";
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
import { type LeftOut, makeReserves } from "./make-reserves.js";
import { parseReserves, readReservesFile } from "./read-reserves.js";
import { encodeReserves, type ReservesFile } from "./reserves-file.js";
import { readSettledBooks, type UnbookedPayment } from "./settled-books.js";
import { assertPartOf, type ProvenReserves, verifyReserves } from "./verify-reserves.js";
import { assertFree, writeReserves } from "./write-reserves.js";

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

/** Makes the file, checks it as a stranger would, and writes it with those of the customers. */
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
    assertFree(file);
    const genesis = readGenesisOption(options.genesis, context.home);
    const leaveOut = (options.leaveOut ?? []).map((text) => readAddressOption("--leave-out", text));
    const keys = { ...readKeys(context.home, options.keystore ?? []), leaveOut };
    const made = await withLedgerAlone(context, ({ database }) =>
      withProofSource(context, options, async (source) => {
        const { books, unbooked } = await readSettledBooks({ database, ...source }, source);
        const onProgress = progress("accounts are collected");
        const parts = { source, books, ...keys, nonce, onProgress };
        return { ...(await makeReserves(parts)), unbooked };
      }),
    );
    const written = await parseReserves(encodeReserves(made.contents));
    const proven = await verifyReserves(written, genesis, {
      signal: context.signal,
      onProgress: progress("accounts are checked"),
    });
    for (const { file: make } of made.liabilities) {
      verifyLiability(parseLiability(encodeLiability(make())));
      const pause = breathe(context.signal);
      if (pause !== undefined) await pause;
    }
    const places = { out: file, customers: options.customers };
    const onProgress = progress("files are written");
    await writeReserves(made, places, { signal: context.signal, onProgress });
    const { leftOut, emptyLeftOut, unbooked } = made;
    const { coldLeftOut, retiredLeftOut, unsignedLeftOut } = made;
    const customers = made.liabilities.length;
    const wallets = { coldLeftOut, retiredLeftOut, unsignedLeftOut };
    const shown = { leftOut, ...wallets, emptyLeftOut, unbooked };
    show(context, proven, { file, customers, ...shown });
    for (const line of unbookedLines(unbooked)) warn(`audit: ${line}`);
    for (const token of leftOut) warn(`audit: ${leftOutText(token)}`);
    for (const address of coldLeftOut) warn(`audit: ${unsignedText(address, "cold storage")}`);
    for (const address of retiredLeftOut) {
      warn(`audit: ${unsignedText(address, "a wallet that was retired since")}`);
    }
    for (const address of unsignedLeftOut) {
      warn(`audit: ${toChecksumAddress(address)} is left out: what it holds is not in the proof.`);
    }
    return proven.isCovered ? AUDIT_EXIT.clean : AUDIT_EXIT.difference;
  });
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
    show(context, proven, { file });
    return proven.isCovered ? AUDIT_EXIT.clean : AUDIT_EXIT.difference;
  });
}

/** Of a proof of reserves that is right, and not enough. */
const NOT_COVERED = "Proven, and NOT COVERED: more is owed than held.";

/** Of one in the first format. */
const UNSIGNED_ACCOUNTS =
  "A former release made the proof of reserves: its wallets did not sign for which accounts these " +
  "are, nor of which ledger. Others may have been put to it, or left out: ask for a new one.";

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
    keys: ofHome.map(({ keystore, passphrase }) => keyOf(keystore, passphrase)),
    named: keystores.map((keystore) => keyOf(keystore, passphraseBeside(keystore))),
  };
}

/** @throws SECRET_FILE_UNREADABLE, and what `decryptKeystore` throws: which of many it is about is said */
function keyOf(keystore: string, passphrase: string): WalletKey {
  const json = readSecretFile(keystore);
  const word = readPassphraseFile(passphrase);
  try {
    return decryptKeystore(json, word);
  } catch (cause) {
    if (!(cause instanceof ChainError)) throw cause;
    throw new ChainError(cause.code, `${keystore}: ${cause.message}`, { cause });
  }
}

function show(
  context: CommandContext,
  proven: ProvenReserves,
  made: {
    readonly file: string;
    readonly customers?: number;
    readonly leftOut?: readonly LeftOut[];
    readonly coldLeftOut?: readonly Address[];
    readonly retiredLeftOut?: readonly Address[];
    readonly unsignedLeftOut?: readonly Address[];
    readonly emptyLeftOut?: number;
    readonly unbooked?: readonly UnbookedPayment[];
  },
): void {
  const { leftOut, coldLeftOut, retiredLeftOut, unsignedLeftOut, ...more } = made;
  const { block, isCovered, otherLiabilities } = proven;
  if (context.json) {
    printJson(context, {
      ok: isCovered,
      ...more,
      ...(leftOut === undefined
        ? {}
        : { leftOut: leftOut.map(({ asset, units }) => ({ asset, units: units.toString() })) }),
      ...(coldLeftOut === undefined ? {} : { coldLeftOut: coldLeftOut.map(toChecksumAddress) }),
      ...(retiredLeftOut === undefined
        ? {}
        : { retiredLeftOut: retiredLeftOut.map(toChecksumAddress) }),
      ...(unsignedLeftOut === undefined
        ? {}
        : { unsignedLeftOut: unsignedLeftOut.map(toChecksumAddress) }),
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
    return;
  }
  const rows: readonly (readonly [string, string])[] = [
    ["block", `${block.height}, ${block.blockHash}`],
    ["time", new Date(block.timestampSeconds * 1_000).toISOString()],
    ["accounts", `${proven.accounts}, of which ${proven.wallets} wallets signed`],
    ...(made.emptyLeftOut === undefined || made.emptyLeftOut === 0
      ? []
      : [["left out", `${made.emptyLeftOut} deposit addresses that hold nothing`] as const]),
    ["reserves", `${atokenToToken(proven.reservesAtoken)} TOKEN`],
    ["of wallets", `${atokenToToken(proven.signedAtoken)} TOKEN, whose keys signed`],
    [
      "of addresses",
      `${atokenToToken(proven.reservesAtoken - proven.signedAtoken)} TOKEN, which the wallets call ` +
        "deposit addresses of the exchange: no key of theirs signed",
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
  context.print(isCovered ? "Proven, and covered." : NOT_COVERED);
}

/** Of a token that is in no proof. Its line must stay: the watcher credits nothing without it. */
export function leftOutText({ asset, units }: LeftOut): string {
  return (
    `${units} units of ${asset} are owed, more than a token can have (2^256 - 1): it is not in the ` +
    "proof, and its customers have no file. What its contract claims is not to be believed: its line " +
    `stays in tokens.json, and the books are to be corrected (causeway ledger adjust --asset ${asset}).`
  );
}

/** Payments that are named one by one. */
const MAX_NAMED = 20;

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
    "not in the proof. With --keystore FILE it signs, and is."
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
