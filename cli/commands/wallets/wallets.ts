/**
 * `causeway wallets list|add|drain|activate|retire`: which hot wallets there are, and what an operator
 * decides about them. Every change is kept with its reason.
 */
import { join } from "node:path";
import { toChecksumAddress } from "../../../chain/address.js";
import {
  encryptKeystore,
  keystoreAddress,
  namesAddressAlone,
} from "../../../chain/signing/keystore.js";
import { DEFAULT_GAS_PRICE_ATOKEN, TRANSFER_GAS } from "../../../chain/networks.js";
import { atokenToToken } from "../../../chain/units.js";
import { closeIfBehind } from "../../../ledger/guard/ledger-guard.js";
import { refuseInRecovery } from "../../../ledger/guard/recovery-incident.js";
import { readTokenAssets } from "../../../ledger/assets/asset-registry.js";
import type { TokenBalance } from "../../../ledger/assets/token-opening.js";
import { readHomeWallets, WALLETS_FOLDER } from "../../../ledger/wallets/home-wallets.js";
import type { HotWallet } from "../../../ledger/wallets/wallet.js";
import { readWalletKey } from "../../../ledger/wallets/wallet-key.js";
import {
  readWalletOverview,
  type WalletLane,
} from "../../../ledger/withdrawals/wallet-overview.js";
import {
  drainWallet,
  reactivateWallet,
  refuseDepositAddresses,
  registerWallets,
  retireWallet,
} from "../../../ledger/wallets/wallet-registry.js";
import { passphraseOf, readPassphraseFile } from "../../../runtime/config/secret-file.js";
import { CliError } from "../../errors.js";
import { createFilesOnce, readText, SECRET_MODE } from "../../home/home-file.js";
import { createSecretFolder, homePaths } from "../../home/home.js";
import { createPrivateKey, createSecretLine } from "../../home/keys/wallet-keys.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { operatorName, readReason } from "../ledger-decisions.js";
import { refuseLate } from "../../ledger/late-node.js";
import { toJson } from "../../command-context.js";
import { type LedgerCommand, type OpenedLedger, withLedger } from "../../ledger/ledger-tools.js";
import { readWalletAddress } from "./wallet-argument.js";

/** What every change takes, as typed. */
export interface WalletWordOptions {
  readonly reason: string;
  readonly operator?: string;
}

/** Options of `wallets add`. */
export interface AddWalletOptions extends WalletWordOptions {
  readonly label: string;
  /** A keystore of version 3 that exists, ... */
  readonly keystore?: string;
  /** ... and the file with its passphrase. */
  readonly passphraseFile?: string;
}

/** Options of `wallets retire`. */
export interface RetireWalletOptions extends WalletWordOptions {
  readonly leaveBehind?: boolean;
  readonly dustAtoken?: string;
}

/** Ten plain transfers at the price that nodes suggest by default: less is not worth fetching. */
const DEFAULT_DUST_ATOKEN = 10n * TRANSFER_GAS * DEFAULT_GAS_PRICE_ATOKEN;

/** `wallets list`: every wallet with what it holds. @returns 0 */
export async function runListWallets(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database, listWallets }) => {
    const wallets = await listWallets();
    const lanes = await readWalletOverview(database);
    const keys = new Set(readHomeWallets(command.home).map(({ address }) => address));
    const shown = lanes.map((wallet) => ({ ...wallet, isInHome: keys.has(wallet.address) }));
    const registered = new Set(lanes.map(({ address }) => address));
    const waiting = wallets.flatMap(({ address, label }) =>
      registered.has(address) ? [] : [{ address, label }],
    );
    if (command.json) {
      command.print(toJson({ wallets: shown, waiting }));
      return 0;
    }
    for (const wallet of shown) command.print(rowOf(wallet, wallet.isInHome));
    for (const { address } of waiting) {
      command.print(`${toChecksumAddress(address)} waits for a first start`);
    }
    return 0;
  });
}

/**
 * `wallets add`: a keystore in the home, made or brought, and the wallet in the ledger.
 * @returns 0 @throws USAGE, HOME_UNUSABLE, the keystore's and the ledger's faults
 */
export async function runAddWallet(
  command: LedgerCommand,
  options: AddWalletOptions,
): Promise<number> {
  const { label } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(label)) {
    throw new CliError("USAGE", "--label must be 1-64 of A-Z, a-z, 0-9, _ and -.");
  }
  const word = wordOf(options);
  return withLedgerAlone(command, async ({ database }) => {
    await refuseForgotten(command, database);
    const key = await keystoreFor(options);
    // Before it lies in the home, where every process would take it up at its next start.
    await refuseDepositAddresses(database, [keystoreAddress(key.keystore)]);
    refuseSecondFile(command.home, keystoreAddress(key.keystore));
    await refuseWithoutKeys(command.home);
    const folder = join(command.home, WALLETS_FOLDER);
    await createSecretFolder(folder);
    const file = join(folder, `${label}.json`);
    // The passphrase comes first: a keystore without one is nothing that a worker may wait for.
    const passphraseFile = join(folder, `${label}.passphrase`);
    const files = [
      { path: passphraseFile, mode: SECRET_MODE, content: () => key.passphrase },
      { path: file, mode: SECRET_MODE, content: () => key.keystore },
    ];
    const taken = await createFilesOnce(files, command);
    if (taken !== undefined) throw labelTaken(taken);
    const added = readHomeWallets(command.home).find(({ keystore }) => keystore === file);
    if (added === undefined) throw new CliError("HOME_UNUSABLE", `${file} cannot be read back.`);
    const { address } = added;
    const [registered] = await registerWallets(database, [{ address, label, ...word }]);
    const isKnown = registered === undefined;
    if (command.json)
      command.print(toJson({ address: toChecksumAddress(address), label, file, isKnown }));
    else for (const line of addedLines(address, file, isKnown)) command.print(line);
    return 0;
  });
}

/** A home in which two files hold one wallet is none that a worker starts on. @throws USAGE */
function refuseSecondFile(home: string, address: HotWallet["address"]): void {
  const there = readHomeWallets(home).find((wallet) => wallet.address === address);
  if (there === undefined) return;
  const name = toChecksumAddress(address);
  throw new CliError(
    "USAGE",
    `${name} is a wallet of this home already, by ${there.keystore}: nothing was added.`,
  );
}

/**
 * A home whose first wallet is named by its address alone, as the operator's under compose, is none whose
 * worker opens keystores: the ledger would have an active wallet that nobody signs for.
 * @throws USAGE
 */
async function refuseWithoutKeys(home: string): Promise<void> {
  const { hotWallet } = homePaths(home);
  if (!namesAddressAlone(await readText(hotWallet))) return;
  throw new CliError(
    "USAGE",
    `${hotWallet} names an address alone: nobody signs with a key that is made in this home, and nothing ` +
      "was added. Type it in the home of the worker, under compose: docker compose run --rm --no-deps " +
      "withdrawal-worker dist/cli/main.js wallets add --label NAME --reason TEXT --home /home/causeway. " +
      "Where a signer of your own has the key (signer.kind), put config/wallets/NAME.json with " +
      '{"address": "0x..."} into that home instead.',
  );
}

/** Never overwritten: what lies there may be all that opens a keystore that is kept elsewhere. */
function labelTaken(taken: string): CliError {
  return new CliError(
    "USAGE",
    `${taken} is there already: choose another --label, or take that file away where nothing needs it.`,
  );
}

function addedLines(address: HotWallet["address"], file: string, isKnown: boolean): string[] {
  const name = toChecksumAddress(address);
  if (isKnown) return [`${name} was known; its key lies in ${file}`];
  return [
    `${name} is a hot wallet now; its key lies in ${file}`,
    `fund it: send TOKEN to ${name}. A running worker takes it up by itself and pays from it as ` +
      "soon as it holds enough.",
    "What arrives stands on liability:suspense until you say where it came from, for example: " +
      `causeway ledger adjust --key fund-${name.slice(2, 10)} --debit liability:suspense ` +
      "--credit asset:cold_storage --amount-atoken N --reason TEXT",
    "Back up the keystore with its passphrase before you send anything.",
  ];
}

async function keystoreFor(
  options: AddWalletOptions,
): Promise<{ readonly keystore: string; readonly passphrase: string }> {
  const { keystore: path, passphraseFile } = options;
  if ((path === undefined) !== (passphraseFile === undefined)) {
    throw new CliError("USAGE", "--keystore and --passphrase-file go together.");
  }
  if (path === undefined || passphraseFile === undefined) {
    const passphrase = createSecretLine();
    const keystore = await encryptKeystore(createPrivateKey(), passphraseOf(passphrase));
    return { keystore, passphrase };
  }
  const keystore = await readText(path);
  const passphrase = readPassphraseFile(passphraseFile);
  // Tried now: a worker that cannot open it would only say so in its log.
  const { address } = readWalletKey({ keystore: path, passphrase: passphraseFile });
  return { keystore: withAddress(keystore, address), passphrase: `${passphrase}\n` };
}

/** A keystore may leave its address out; here it has to be readable without the passphrase. */
function withAddress(keystore: string, address: HotWallet["address"]): string {
  const fields: unknown = JSON.parse(keystore);
  return `${JSON.stringify({ ...Object(fields), address: toChecksumAddress(address) }, undefined, 2)}\n`;
}

/** `wallets drain`: no new payments; what is on its way goes on. @returns 0 */
export async function runDrainWallet(
  command: LedgerCommand,
  address: string,
  options: WalletWordOptions,
): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    // Not refused while the ledger is closed: it stops something.
    await closeIfBehind(database, command.home);
    const wallet = await drainWallet(database, readWalletAddress(address), wordOf(options));
    return printChange(command, wallet);
  });
}

/** `wallets activate`: a draining wallet takes new payments again. @returns 0 */
export async function runActivateWallet(
  command: LedgerCommand,
  address: string,
  options: WalletWordOptions,
): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    await refuseForgotten(command, database);
    const wallet = await reactivateWallet(database, readWalletAddress(address), wordOf(options));
    return printChange(command, wallet);
  });
}

/** `wallets retire`: nobody signs for it any more; it is watched and reconciled on. @returns 0 */
export async function runRetireWallet(
  command: LedgerCommand,
  address: string,
  options: RetireWalletOptions,
): Promise<number> {
  const dustAtoken = readDust(options.dustAtoken);
  return withLedger(command, async ({ database, node }) => {
    const wallet = readWalletAddress(address);
    const { signal } = command;
    await refuseForgotten(command, database);
    await refuseLate(command, { database, node }, "The wallet stays as it is.");
    const height = await node.blockNumber({ signal });
    const balanceAtoken = await node.getBalance(wallet, height, { signal });
    const held = await readTokensOf({ database, node }, { account: wallet, at: height, signal });
    const force = options.leaveBehind === true;
    const allowed = { ...wordOf(options), balanceAtoken, ...held, height, dustAtoken, force };
    return printChange(command, await retireWallet(database, wallet, allowed));
  });
}

/**
 * A ledger that has come back older has forgotten what is decided by: deposit addresses, what a person has
 * said of a wallet since, nonces that are open.
 * @throws RECOVERY, HOME_MARK_UNUSABLE
 */
async function refuseForgotten(
  { home }: LedgerCommand,
  database: OpenedLedger["database"],
): Promise<void> {
  await closeIfBehind(database, home);
  await refuseInRecovery(database);
}

/**
 * What a wallet has of the ledger's tokens after a block, and of which a contract does not tell it. One that
 * is not made yet has nothing of anybody's.
 */
async function readTokensOf(
  { database, node }: Pick<OpenedLedger, "database" | "node">,
  asked: {
    readonly account: HotWallet["address"];
    readonly at: HotWallet["fromHeight"];
    readonly signal: AbortSignal;
  },
): Promise<{ readonly tokens: readonly TokenBalance[]; readonly untold: readonly string[] }> {
  const { account, at, signal } = asked;
  const assets = await readTokenAssets(database);
  const queries = assets.map(({ contract: token }) => ({ token, account, at }));
  const balances = await node.tokenBalances(queries, { signal });
  const tokens: TokenBalance[] = [];
  const untold: string[] = [];
  for (const [index, { symbol: asset, contract }] of assets.entries()) {
    const amountUnits = balances[index];
    if (amountUnits !== undefined) {
      if (amountUnits > 0n) tokens.push({ asset, amountUnits });
    } else if ((await node.getCode(contract, at, { signal })) !== "0x") untold.push(asset);
  }
  return { tokens, untold };
}

function readDust(text: string | undefined): bigint {
  if (text === undefined) return DEFAULT_DUST_ATOKEN;
  if (!/^[0-9]{1,30}$/.test(text)) {
    throw new CliError("USAGE", "--dust-atoken must be a whole number of atoken.");
  }
  return BigInt(text);
}

function printChange(command: LedgerCommand, wallet: HotWallet): number {
  if (command.json) command.print(toJson({ wallet }));
  else {
    const { address, status, since, reason } = wallet;
    command.print(`${toChecksumAddress(address)} is ${status} since ${since}: ${reason}`);
  }
  return 0;
}

function wordOf({ reason, operator }: WalletWordOptions) {
  return { reason: readReason(reason), operator: operatorName(operator) };
}

function rowOf(wallet: WalletLane, isInHome: boolean): string {
  const { address, label, status, seenAtoken, reservedAtoken, openSlots, freeze } = wallet;
  const balance = seenAtoken === undefined ? "not seen yet" : `${atokenToToken(seenAtoken)} TOKEN`;
  const parts = [
    toChecksumAddress(address),
    status,
    label,
    balance,
    `reserved ${atokenToToken(reservedAtoken)}`,
    `open ${openSlots}`,
    `next nonce ${wallet.nextNonce ?? "unknown"}`,
    ...(wallet.leaseHolder === undefined ? [] : [`held by ${wallet.leaseHolder}`]),
    ...(isInHome || status === "retired" ? [] : ["NO KEYSTORE IN THIS HOME"]),
    ...(freeze.frozen ? [`FROZEN: ${freeze.reason}`] : []),
  ];
  return parts.join("  ");
}
