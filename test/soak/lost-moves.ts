/**
 * What a treasury had paid behind a copy: the chain has it, and nobody asks for it again. A person tells
 * gas for a sweep from a move to cold storage by where it went (docs/restore.md).
 */
import fs from "node:fs";
import path from "node:path";
import { NATIVE_ASSET, TREASURY } from "../../ledger/journal/accounts.js";
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import { until } from "../helpers/until.js";
import { command, must, REASON } from "./operator.js";

/** A payment of the chain that the ledger knows nothing of, as `ledger open` has it. */
interface LostPayment {
  readonly hash: string;
  readonly destination: string;
  readonly amountUnits: string;
}

/** Time in which every sweep that the copy had begun ends. */
const SWEEPS_TIMEOUT_MS = 120_000;

/** What waited in the copy to be paid was paid since, or is paid now. */
async function endWaitingMoves(lab: LabExchange): Promise<void> {
  const rows = await lab.query<{ id: string; destination: string; amount: string }>(
    `SELECT id, destination, amount_units::text AS amount FROM withdrawal
      WHERE customer_id = $1 AND status = 'frozen'`,
    [TREASURY],
  );
  for (const { id, destination, amount } of rows) {
    const lost = await lostPayments(lab);
    const paid = lost.find((one) => one.destination === destination && one.amountUnits === amount);
    const words =
      paid === undefined
        ? ["withdrawals", "release", id, "--not-paid"]
        : ["ledger", "link-payment", paid.hash, "--withdrawal", id, "--reason", REASON];
    await must(lab, ...words);
    if (paid !== undefined) lab.customers.gasHashes.add(paid.hash);
  }
}

/** Every payment that no customer's request is: gas is written off, and cold storage has its own. */
export async function explainMoves(lab: LabExchange): Promise<void> {
  if (lab.options.hasTreasury !== true) return;
  await endWaitingMoves(lab);
  for (const { hash, destination, amountUnits } of await lostPayments(lab)) {
    await must(lab, "ledger", "write-off-payment", hash, "--reason", REASON);
    lab.customers.writtenOff.add(hash);
    const amount = ["--amount-atoken", amountUnits, "--reason", REASON];
    if (destination === coldAddress(lab)) {
      const sides = ["--debit", "asset:cold_storage", "--credit", "expense:write_off"];
      await must(lab, "ledger", "adjust", "--key", `cold:${hash}`, ...sides, ...amount);
      continue;
    }
    const [gas] = await lab.query<{ id: string }>(
      `SELECT id FROM deposit WHERE tx_hash = $1 AND status = 'suspense'`,
      [hash],
    );
    if (gas === undefined) throw new Error(`${hash} to ${destination} is neither gas nor stored`);
    const sides = ["--debit", "liability:suspense", "--credit", "expense:write_off"];
    const named = ["--key", `gas:${hash}`, "--deposit", gas.id];
    await must(lab, "ledger", "adjust", ...named, ...sides, ...amount);
    lab.customers.gasHashes.add(hash);
  }
  // One that was asked for meanwhile, and equalled one of them.
  await endWaitingMoves(lab);
  await endSweeps(lab);
  await noteLostSweeps(lab);
}

/** What deposit addresses sent behind the copy has arrived, and is a sweep of no book. */
async function noteLostSweeps(lab: LabExchange): Promise<void> {
  const { customers, startHeight, lostSweeps } = lab;
  const blocks = await customers.chain.blocks(startHeight, await customers.chain.height());
  const known = await lab.query<{ hash: string }>(`SELECT hash FROM sweep_attempt`);
  const hashes = new Set(known.map(({ hash }) => hash));
  for (const { from, hash } of blocks.flatMap(({ transactions }) => transactions)) {
    if (customers.ownerOf(from) !== undefined && !hashes.has(hash)) lostSweeps.add(hash);
  }
}

/** One that was signed behind the copy used its nonce, and freezes: its address is looked at anew. */
async function endSweeps(lab: LabExchange): Promise<void> {
  const [newest] = await lab.query<{ id: string }>(
    `SELECT coalesce(max(id), 0)::text AS id FROM sweep`,
  );
  const areEnded = async () => {
    const open = await lab.query<{ id: string; state: string }>(
      `SELECT id::text, state FROM sweep
        WHERE id <= $1 AND state NOT IN ('settled', 'void', 'foreign')`,
      [newest?.id],
    );
    for (const { id, state } of open) {
      if (state === "frozen") await must(lab, "sweeps", "release", id, "--reason", REASON);
    }
    return open.length === 0;
  };
  const what = "the sweeps of the copy end";
  await until(areEnded, { timeoutMs: SWEEPS_TIMEOUT_MS, what });
}

async function lostPayments(lab: LabExchange): Promise<readonly LostPayment[]> {
  const { stdout } = await command(lab, "ledger", "open", "--json");
  return (JSON.parse(stdout) as { payments: readonly LostPayment[] }).payments;
}

function coldAddress(lab: LabExchange): string {
  const text = fs.readFileSync(path.join(lab.home, "config", "policy.json"), "utf8");
  const { treasury } = JSON.parse(text) as {
    treasury: { assets: Record<string, { coldAddress?: string }> };
  };
  return String(treasury.assets[NATIVE_ASSET]?.coldAddress).toLowerCase();
}
