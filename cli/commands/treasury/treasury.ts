/** `causeway treasury status` and `causeway sweeps list|release`. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import {
  broughtUnits,
  findSweep,
  listSweeps,
  type Sweep,
} from "../../../ledger/treasury/sweeps.js";
import { asSweepState, LATE_MINUTES, SWEEP_STATES } from "../../../ledger/treasury/sweep-states.js";
import { readTreasury, type TreasuryFigures } from "../../../ledger/treasury/treasury-figures.js";
import { readKeyless } from "../../../ledger/wallets/payable-wallets.js";
import { decideSweepRelease } from "../../../ledger/decisions/sweep-release.js";
import { closeIfBehind } from "../../../ledger/guard/ledger-guard.js";
import { refuseInRecovery } from "../../../ledger/guard/recovery-incident.js";
import { amountText } from "../../amount-text.js";
import { CliError } from "../../errors.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { refuseLate } from "../../ledger/late-node.js";
import { toJson } from "../../command-context.js";
import { type LedgerCommand, withLedger } from "../../ledger/ledger-tools.js";
import { lastIfFull, type PageOptions, readPage } from "../../list-page.js";
import { readWholeNumber } from "../../whole-number.js";
import { operatorName, readReason } from "../ledger-decisions.js";

/** Filters of `sweeps list`, as typed. */
export interface ListSweepsOptions extends PageOptions {
  readonly state?: string;
}

/** Options of `sweeps release`. */
export interface ReleaseSweepOptions {
  readonly reason: string;
  readonly operator?: string;
}

/** `treasury status`. @returns 0, or 1 while persons are asked to send something */
export async function runTreasury(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const assets = await readTreasury(database);
    const keyless = await readKeyless(database);
    const lines = [...assets.flatMap(linesOf), ...keyless.map(keylessLine)];
    if (command.json) command.print(toJson({ assets, keyless }));
    else for (const line of lines) command.print(line);
    return assets.some(({ refill }) => refill !== undefined) ? 1 : 0;
  });
}

function keylessLine(wallet: Address): string {
  return (
    `NO KEY: no worker says that it holds the key of the wallet ${toChecksumAddress(wallet)}: ` +
    "nothing is swept to it, and what it has counts in no band"
  );
}

function linesOf(figures: TreasuryFigures): readonly string[] {
  const { asset, hotUnits, depositAddressesUnits, inTransitUnits, coldUnits, refill } = figures;
  const text = (units: bigint) => amountText(asset, units);
  const row =
    `${asset}: hot wallets ${text(hotUnits)}, deposit addresses ${text(depositAddressesUnits)}, ` +
    `in transit ${text(inTransitUnits)}, cold storage ${text(coldUnits)}, ` +
    `${figures.openSweeps} open sweeps (${figures.frozenSweeps} frozen)`;
  const stranded = figures.strandedUnits;
  const rows =
    stranded > 0n
      ? [row, `  STRANDED: ${text(stranded)} in transit wait for nonces of retired wallets`]
      : [row];
  if (refill === undefined) return rows;
  const { amountUnits, cameUnits, wallet, wallets } = refill;
  const to =
    wallet === undefined
      ? `a hot wallet whose key a worker holds: ${wallets.map(toChecksumAddress).join(", ")}`
      : `the hot wallet ${toChecksumAddress(wallet)}: of what waits one is larger than any wallet has, ` +
        "and one wallet pays it";
  return [
    ...rows,
    `  REFILL ${refill.id}: send ${text(amountUnits - cameUnits)} from cold storage to ${to}`,
  ];
}

/** `sweeps list`. @returns 0, or 1 while any sweep is frozen, shown or not @throws USAGE */
export async function runListSweeps(
  command: LedgerCommand,
  options: ListSweepsOptions,
): Promise<number> {
  const state = options.state === undefined ? undefined : asSweepState(options.state);
  if (options.state !== undefined && state === undefined) {
    throw new CliError("USAGE", `--state must be one of ${SWEEP_STATES.join(", ")}.`);
  }
  const { limit, after: afterId } = readPage(options);
  return withLedgerAlone(command, async ({ database }) => {
    const sweeps = await listSweeps(database, { state, afterId, limit });
    if (command.json) {
      const shown = sweeps.map((sweep) => ({ ...sweep, amountUnits: broughtUnits(sweep) }));
      command.print(toJson({ sweeps: shown }));
    } else {
      if (sweeps.length === 0) command.print("No sweeps.");
      for (const sweep of sweeps) command.print(rowOf(sweep));
      const next = lastIfFull(sweeps, limit)?.id;
      if (next !== undefined) command.print(`more: --after ${next}`);
    }
    // Those that are shown first are the oldest, which have ended long since.
    const frozen = await listSweeps(database, { state: "frozen", afterId: 0, limit: 1 });
    return frozen.length > 0 ? 1 : 0;
  });
}

function rowOf(sweep: Sweep): string {
  const { id, address, asset, wallet, state, reason, minedHash, isLate } = sweep;
  const price = sweep.attempts.at(-1)?.gasPriceAtoken;
  // Whether a block took it only the chain says: the watcher may be behind.
  const late = isLate
    ? `not booked within ${LATE_MINUTES} minutes, last signed at ${price} atoken per gas`
    : undefined;
  const row =
    `${id}  ${state}  ${amountText(asset, broughtUnits(sweep))}  ` +
    `${toChecksumAddress(address)} -> ${toChecksumAddress(wallet)}`;
  return [row, minedHash, late, reason].filter((part) => part !== undefined).join("  ");
}

/**
 * `sweeps release`: the chain says whether its nonce is used; one that our own bytes used ends by
 * itself when the watcher books their block.
 * @returns 0 @throws USAGE, NOT_FROZEN, RECOVERY, HOME_MARK_UNUSABLE, the node's faults
 */
export async function runReleaseSweep(
  command: LedgerCommand,
  idText: string,
  options: ReleaseSweepOptions,
): Promise<number> {
  const id = readWholeNumber("<id>", idText, { least: 0 });
  const word = { reason: readReason(options.reason), operator: operatorName(options.operator) };
  const { signal } = command;
  return withLedger(command, async ({ database, node }) => {
    // A sweep that has been made behind a backup is frozen in it still.
    await closeIfBehind(database, command.home);
    await refuseInRecovery(database);
    await refuseLate(command, { database, node }, "Nothing was released.");
    const sweep = await findSweep(database, id);
    if (sweep?.gas === undefined) throw new CliError("USAGE", `There is no frozen sweep ${id}.`);
    const nonce = await node.getTransactionCount(sweep.address, "latest", { signal });
    const isNonceUsed = nonce > sweep.gas.nonce;
    const hashes = sweep.attempts.map(({ hash }) => hash);
    const receipts = await node.getTransactionReceipts(hashes, { signal });
    const mined = receipts.find((receipt) => receipt !== undefined);
    if (mined !== undefined) {
      const { transactionHash } = mined;
      throw new CliError("USAGE", `${transactionHash} is mined: it ends when its block is booked.`);
    }
    await decideSweepRelease(database, { sweepId: id, isNonceUsed, ...word });
    const next = isNonceUsed
      ? `Another transaction used nonce ${sweep.gas.nonce}: the address is looked at anew.`
      : sweep.attempts.length === 0
        ? "Its nonce is free: it is signed."
        : "Its bytes are sent again.";
    command.print(command.json ? toJson({ id, isNonceUsed, next }) : next);
    return 0;
  });
}
