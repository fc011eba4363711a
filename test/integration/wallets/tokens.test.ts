/** Tokens with two hot wallets on a real chain: who pays, a later wallet's past, a break followed. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { keccak256 } from "../../../chain/hashes.js";
import type { Hex } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import type { Address } from "../../../chain/address.js";
import { walletAccount } from "../../../ledger/journal/accounts.js";
import { divergenceText, explainBreaks } from "../../../ledger/books/break-causes.js";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import {
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import { createReconcileChain } from "../../../rpc-client/reconcile-chain.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import { registerTestWallets, roleUrl, silentLog } from "../../helpers/services/ledger.js";
import { ANY_REQUEST, laneRules } from "../../helpers/keys/signing.js";
import { until } from "../../helpers/until.js";
import { callOf, TokenBench, TOKENS } from "../tokens/token-bench.js";
import {
  freshAddress,
  House,
  requestOf,
  WALLET,
  WALLET_KEY,
} from "../../helpers/exchange/house.js";
import { createPatientNode } from "../../helpers/exchange/patient-node.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the tokens"));
const SECOND = privateKeyToAddress(SECOND_KEY);
const { signal } = new AbortController();

let bench: TokenBench;
let house: House;
let worker: LedgerDatabase;
let lanes: readonly Lane[];
/** What the lanes sent since the last block. */
let sent: Hex[] = [];

beforeAll(async () => {
  bench = await TokenBench.open();
  house = await House.open();
  const alice = await bench.register("alice");
  await bench.watch();
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [WALLET, 50n]),
    // Long before it is a wallet: its past.
    callOf("PlainToken", "mint", [SECOND, 400n]),
    callOf("PlainToken", "mint", [alice, 1_000n]),
    { to: WALLET, value: 10n ** 18n },
    { to: SECOND, value: 10n ** 18n },
  ]);
  await settleBlocks();
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const url = roleUrl(bench.ledger.ownerUrl, "worker");
  worker = await openLedger({
    url,
    log: silentLog,
    signal,
    identity: { chainId: 6940n, genesisHash },
  });
  lanes = [laneOf(WALLET, WALLET_KEY), laneOf(SECOND, SECOND_KEY)];
});

afterAll(async () => {
  await worker.close();
  await house.close();
  await bench.close();
});

function laneOf(wallet: Address, privateKey: Uint8Array): Lane {
  const context = house.context();
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const node = createPatientNode(bench.rpc, { chainId: 6940n, genesisHash });
  const { priceCapAtoken: gasPriceCapAtoken, limitMax: gasLimitMax } = context.settings.gas;
  const rules = laneRules({
    privateKey,
    chainId: 6940n,
    limits: { gasPriceCapAtoken, gasLimitMax },
    sql: worker,
    contractOf: (asset) => TOKENS.find(({ symbol }) => symbol === asset)?.contractAddress,
  });
  const ledger = createLaneLedger(worker);
  const guard = createLaneGuard({ database: worker, wallet, log: silentLog });
  const own = { ...context, ...rules, chainId: 6940n, ledger, guard };
  const send: typeof node.send = (raws, options) => {
    sent.push(...raws);
    return node.send(raws, options);
  };
  return new Lane({ ...own, node: { ...node, send } }, randomUUID());
}

async function settleBlocks(): Promise<void> {
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
}

async function accept(asset: string, amountUnits: bigint): Promise<Withdrawal> {
  const destination = freshAddress();
  const request = requestOf({ asset, amountUnits, destination, idempotencyKey: randomUUID() });
  const [outcome] = await acceptWithdrawals(worker, [request], ANY_REQUEST);
  if (outcome?.outcome !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome.withdrawal;
}

async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    house.clock.ms += 3_000;
    await bench.ledger.owner.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
    for (const lane of lanes) await lane.runRound(signal);
    const raws = [...new Set(sent)];
    sent = [];
    await bench.mine([], raws);
    // Nothing of a token is settled before the watcher has looked at its block.
    await bench.caughtUp();
  }
}

const stateOf = async ({ id }: Withdrawal) => {
  const found = await findWithdrawal(bench.database, id);
  return [found?.status, found?.wallet];
};

it("books the tokens that a later wallet had, once, beside its coins", async () => {
  await registerTestWallets(bench.database, SECOND);
  await bench.mine([]);
  await until(
    async () => (await listWallets(bench.database)).every(({ pastBooked }) => pastBooked),
    { timeoutMs: 30_000, what: "its past is booked" },
  );
  await bench.caughtUp();
  const rows = await bench.database.query(
    `SELECT p.asset, p.debit, p.credit, p.amount_units::text AS units
       FROM journal_entry e JOIN posting p ON p.journal_id = e.id
      WHERE e.kind = 'wallet.past' ORDER BY p.asset`,
  );
  const sides = { debit: walletAccount(SECOND), credit: "liability:suspense" };
  expect(rows).toEqual([
    { asset: "PLAIN", ...sides, units: "400" },
    { asset: "TOKEN", ...sides, units: (10n ** 18n).toString() },
  ]);
  const report = await bench.reconcile();
  expect([report.clean, report.lines, report.tokens]).toMatchObject([true, {}, {}]);
});

it("pays a token from the wallet that has it, each once, and both books are even", async () => {
  const small = await accept("PLAIN", 40n);
  const large = await accept("PLAIN", 300n);
  await rounds(6);
  expect(await stateOf(large)).toEqual(["settled", SECOND]);
  expect((await stateOf(small))[0]).toBe("settled");
  const report = await bench.reconcile();
  expect([report.clean, report.lines, report.tokens]).toMatchObject([true, {}, {}]);
  const plain = report.tokens.find(({ asset }) => asset === "PLAIN");
  const held = new Map(plain?.lines.map(({ account, chainUnits }) => [account, chainUnits]));
  const left = [WALLET, SECOND].map((wallet) => held.get(walletAccount(wallet)) ?? 0n);
  expect(left[0] ?? 0n).toBe((await stateOf(small))[1] === WALLET ? 10n : 50n);
  expect(left.reduce((sum, units) => sum + units, 0n)).toBe(450n - 340n);
});

it("follows tokens that somebody took of the later wallet to their block", async () => {
  const thief = new Wallet(`0x${Buffer.from(SECOND_KEY).toString("hex")}`);
  bench.skipNonce(
    thief.address,
    await bench.node.getTransactionCount(SECOND, "latest", { signal }).then(Number),
  );
  await settleBlocks();
  const [hash] = await bench.mine([
    { from: thief, ...callOf("PlainToken", "transfer", [freshAddress(), 7n]) },
  ]);
  const { height } = bench.chain.chain.view.head();
  await settleBlocks();
  await settleBlocks();
  const report = await bench.reconcile();
  expect(report.clean).toBe(false);
  const chain = createReconcileChain(bench.node, signal);
  const { divergences: found } = await explainBreaks(bench.ledger.owner, chain, report);
  const place = { address: SECOND, height, causes: [{ txHash: hash }] };
  expect(found).toMatchObject([
    { asset: "TOKEN", ...place },
    { asset: "PLAIN", ...place },
  ]);
  expect(found.map(divergenceText).join("\n")).toContain(`(PLAIN) differs since block ${height}`);
  // Only the wallet whose key was used stops signing.
  expect((await readFreeze(bench.database, SECOND)).reason).toContain(hash);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(false);
});
