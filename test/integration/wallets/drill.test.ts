/**
 * The runbook of docs/rotation.md, command by command, while lanes with the home's own keystores work as
 * in the worker's process: nobody restarts anything.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { encryptKeystoreJsonSync, Wallet } from "ethers";
import { type Address, parseAddress, toChecksumAddress } from "../../../chain/address.js";
import { bytesToHex } from "../../../chain/hex.js";
import { readHomeWallets } from "../../../ledger/wallets/home-wallets.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { Lanes } from "../../../withdrawal-worker/lanes.js";
import { WalletKeys } from "../../../withdrawal-worker/wallet-keys.js";
import { ensureKillSwitchFile } from "../../../withdrawal-worker/kill-switch.js";
import { killSwitchPath, policyPath } from "../../../ledger/policy/policy-paths.js";
import { PERMISSIVE_POLICY, policyFileText } from "../../../ledger/policy/policy.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { SignerTotals } from "../../../withdrawal-worker/signers/signer-totals.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../recovery/desk.js";

const page = readFileSync("docs/rotation.md", "utf8");

let desk: Desk;
let lanes: Lanes;
let openKeys: () => WalletKeys;
let miner: NodeJS.Timeout;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  const { privateKey } = new Wallet(bytesToHex(KEY));
  const account = { address: toChecksumAddress(WALLET), privateKey };
  const keystore = encryptKeystoreJsonSync(account, "secret", { scrypt: { N: 1_024, r: 8, p: 1 } });
  writeFileSync(join(desk.home, "config", "hot-wallet.json"), keystore, { mode: 0o600 });
  writeFileSync(join(desk.home, "config", "hot-wallet.passphrase"), "secret\n", { mode: 0o600 });
  const limits = {
    gasPriceCapAtoken: 10n ** 9n,
    gasLimitMax: 1_000_000n,
    feePerPayoutAtoken: 10n ** 17n,
  };
  const settings = { kind: "keystore", url: "", command: [], "timeout-ms": 5_000 } as const;
  const totals = new SignerTotals(join(desk.home, "signer-totals"), systemClock);
  const rules = { chainId: FAKE_CHAIN_ID, limits, totals, tokens: [] };
  writeFileSync(policyPath(desk.home), policyFileText(PERMISSIVE_POLICY), { mode: 0o600 });
  await ensureKillSwitchFile(killSwitchPath(desk.home), desk.workerDatabase);
  openKeys = () => new WalletKeys({ home: desk.home, settings, ...rules, log: silentLog });
  lanes = new Lanes({
    database: desk.workerDatabase,
    keys: openKeys(),
    createLane: (wallet, key) => desk.makeLane(wallet, key, { leaseMs: 2_000, scanIntervalMs: 50 }),
    log: silentLog,
    signal: desk.signal,
    onFault: (error) => {
      throw error;
    },
  });
  lanes.start();
  startMiner();
});

function startMiner(): void {
  miner = setInterval(() => desk.chain.mine(), 50);
}

/** Books what there is. No block comes meanwhile: on a busy machine the watcher would never be found at the head. */
async function watchAll(): Promise<void> {
  clearInterval(miner);
  await desk.watch();
  startMiner();
}

afterEach(async () => {
  clearInterval(miner);
  await lanes.stop();
  await desk.close();
});

/** Runs a command of the runbook: the page has to have it, with names for what is put in. */
async function runbook(command: string, values: Readonly<Record<string, string>> = {}) {
  expect(page).toContain(`npm run causeway -- ${command}\n`);
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => {
    const word = quoted ?? plain ?? "";
    const name = /^<([a-z]+)>$/.exec(word)?.[1];
    return name === undefined ? word : (values[name] ?? `missing ${name}`);
  });
  const result = await desk.causeway(...words);
  expect([command, result]).toEqual([command, { ...result, code: 0 }]);
  return result.text;
}

async function payOut(key: string, amountAtoken: bigint): Promise<Address | undefined> {
  const to = destination(key.length);
  const { id } = await desk.request({ key, customer: "alice", to, amountAtoken });
  await settled(id);
  return (await desk.read(id)).wallet;
}

const settled = (id: WithdrawalId) =>
  until(async () => (await desk.read(id)).status === "settled", {
    timeoutMs: 30_000,
    what: `${id} is settled`,
  });

it("lets a new wallet take over while payouts go on, and accounts for every coin", async () => {
  expect(await payOut("k", TOKEN)).toBe(WALLET);

  const added = await runbook(`wallets add --label <label> --reason "<reason>"`, {
    label: "second",
    reason: "yearly rotation",
  });
  const second = parseAddress(/^(0x[0-9a-fA-F]{40}) is a hot wallet now/.exec(added)?.[1]);
  for (const name of ["second.json", "second.passphrase"]) {
    expect(statSync(join(desk.home, "config", "wallets", name)).mode & 0o777).toBe(0o600);
  }

  desk.pay([second, 20n * TOKEN]);
  await watchAll();
  await runbook(
    "ledger adjust --key <key> --debit liability:suspense --credit asset:cold_storage " +
      `--amount-atoken <amount> --reason "<reason>"`,
    { key: "fund-second", amount: (20n * TOKEN).toString(), reason: "from cold storage" },
  );
  await until(async () => (await runbook("wallets list")).includes("20 TOKEN"), {
    timeoutMs: 30_000,
    what: "the worker sees the new wallet's coins",
  });

  const old = WALLET;
  await runbook(`wallets drain <old> --reason "<reason>"`, { old, reason: "yearly rotation" });
  expect(await payOut("kk", TOKEN)).toBe(second);

  await expect(desk.causeway("wallets", "retire", WALLET, "--reason", "too early")).rejects.toThrow(
    "atoken: wait, move its coins",
  );
  const feeAtoken = 21n;
  const heldAtoken = desk.chain.balances.get(WALLET) ?? 0n;
  const moved = desk.chain.payment(WALLET, second, heldAtoken - feeAtoken, feeAtoken);
  desk.chain.mine([moved]);
  await watchAll();
  const reason = "the rest of it went to the new wallet";
  const { hash } = moved;
  await runbook(`ledger accept-outflow <hash> --account liability:suspense --reason "<reason>"`, {
    hash,
    reason,
  });
  const words = { old, hash, reason };
  await runbook(
    `withdrawals release --wallet <old> --acknowledge <hash> --reason "<reason>"`,
    words,
  );
  await runbook(`wallets retire <old> --reason "<reason>"`, { old, reason: "rotated" });

  expect(await payOut("kkk", TOKEN)).toBe(second);
  await watchAll();
  await runbook("reconcile");
  const suspense = await desk.database.query(
    `SELECT coalesce(sum(CASE WHEN credit = 'liability:suspense' THEN amount_units
                              ELSE -amount_units END), 0)::text AS sum
       FROM posting WHERE 'liability:suspense' IN (debit, credit)`,
  );
  expect(suspense).toEqual([{ sum: "0" }]);

  // The old wallet was the home's first one: whoever only took its keystore out could not start any more.
  takeOut({ home: desk.home, safe: mkdtempSync(join(tmpdir(), "safe-")), label: "second", old });
  const left = readHomeWallets(desk.home);
  expect(left.map(({ address }) => address)).toEqual([second, WALLET]);
  // As doctor wants each file there.
  expect(left.map(({ keystore }) => statSync(keystore).mode & 0o777)).toEqual([0o600, 0o600]);
  const keys = openKeys();
  expect([keys.signerOf(second)?.address, keys.signerOf(WALLET)]).toEqual([second, undefined]);
  await runbook("wallets list");
});

/** Types what the page says about the keystore of a wallet that was the first one and is retired. */
function takeOut(values: Readonly<Record<string, string>>): void {
  const [, typed = ""] = /```sh\n(mv [^`]*)```/.exec(page) ?? [];
  const filled = typed.replace(/<([a-z]+)>/g, (_, name: string) => values[name] ?? `no ${name}`);
  execFileSync("sh", ["-euc", filled]);
}
