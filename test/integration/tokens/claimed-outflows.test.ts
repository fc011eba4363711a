/** A listed token that says it took of an address of ours, and moved nothing: nothing is booked or stops. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import type { Hash32 } from "../../../chain/hex.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { listSightings } from "../../../ledger/assets/token-sightings.js";
import { sweptPlaces } from "../../../ledger/treasury/swept-places.js";
import { WALLET } from "../../helpers/exchange/house.js";
import { errorLog } from "../../helpers/services/ledger.js";
import { callOf, contractAt, ISSUER, THIEF, TokenBench, TOKENS } from "./token-bench.js";

const LISTED = [
  ...TOKENS,
  { symbol: "FORGED", contractAddress: contractAt("Forger"), decimals: 0 },
];

let bench: TokenBench;
const errors: Record<string, unknown>[] = [];

beforeAll(async () => {
  bench = await TokenBench.open(undefined, LISTED);
  await bench.watch(LISTED, errorLog(errors));
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [WALLET, 900n]),
    { to: WALLET, value: 10n ** 18n },
  ]);
});
afterAll(() => bench?.close());

const outflows = () =>
  bench.database.query(
    `SELECT tx_hash, amount_units::text AS units FROM foreign_outflow WHERE asset <> 'TOKEN'`,
  );

it("records what did not leave, at both ends of the claim, and signs on", async () => {
  const alice = await bench.register("alice");
  await bench.caughtUp();
  const [claim = "0x" as Hash32] = await bench.mine([
    callOf("Forger", "fungible", [WALLET, alice, 5n]),
    callOf("Forger", "fungible", [WALLET, ISSUER.address, 2n ** 256n - 1n]),
  ]);
  await bench.mine([]);
  await bench.caughtUp();
  const rows = await listSightings(bench.database, { txHash: claim, afterId: 0, limit: 10 });
  expect(rows.map(({ address, reason, claimed }) => `${address} ${reason} ${claimed}`)).toEqual([
    `${WALLET} NOT_LEFT 5`,
    `${alice} NOT_ARRIVED 5`,
  ]);
  expect(await outflows()).toEqual([]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(false);
  const forged = (await bench.reconcile()).tokens.find(({ asset }) => asset === "FORGED");
  expect(forged?.lines.map(({ differenceUnits }) => differenceUnits)).toEqual([0n, 0n]);
});

it("makes no surplus of what did not leave a deposit address, and says so in the log", async () => {
  const bob = await bench.register("bob");
  await bench.mine([callOf("PlainToken", "mint", [bob, 40n])]);
  await bench.mine([]);
  await bench.caughtUp();
  errors.length = 0;
  const [claim = "0x" as Hash32] = await bench.mine([
    callOf("Forger", "fungible", [bob, ISSUER.address, 6n]),
    callOf("Forger", "fungible", [bob, ISSUER.address, 7n]),
  ]);
  const { height } = bench.chain.chain.view.head();
  await bench.mine([]);
  await bench.caughtUp();
  const rows = await listSightings(bench.database, { txHash: claim, afterId: 0, limit: 10 });
  expect(rows.map(({ address, reason, claimed }) => `${address} ${reason} ${claimed}`)).toEqual([
    `${bob} NOT_LEFT 6`,
  ]);
  expect(await outflows()).toEqual([]);
  const booked = await bench.database.query(`SELECT kind FROM journal_entry e
    JOIN posting p ON p.journal_id = e.id WHERE p.asset = 'FORGED'`);
  expect(booked).toEqual([]);
  expect(errors).toEqual([
    {
      height,
      wallet: bob,
      contract: contractAt("Forger"),
      txHash: claim,
      more: 1,
      msg: "a token says that units left an address of ours, whose balance did not fall by them",
    },
  ]);
});

it("books what a sweep of ours says as ever", async () => {
  const carol = await bench.register("carol");
  const sender = new Wallet(`0x${"5e".repeat(32)}`);
  await bench.mine([{ to: sender.address, value: 10n ** 18n }]);
  const fields = { type: 0, chainId: 6940, nonce: 0, gasPrice: 25_000_000n, gasLimit: 100_000n };
  const claim = callOf("Forger", "fungible", [carol, WALLET, 8n]);
  const raw = await sender.signTransaction({ ...fields, ...claim });
  const { owner } = bench.ledger;
  const hash = await bench.storeSweep(raw, { address: carol, asset: "FORGED", units: 8n });
  const places = [carol, WALLET].map((wallet) => ({ wallet, hash }));
  expect([...(await sweptPlaces(bench.database, places))]).toEqual([`${carol} ${hash}`]);
  await bench.mine([], [raw]);
  await bench.mine([]);
  await bench.caughtUp();
  const rows = await listSightings(bench.database, { txHash: hash, afterId: 0, limit: 10 });
  expect(rows.map(({ address, reason }) => `${address} ${reason}`)).toEqual([
    `${WALLET} NOT_ARRIVED`,
  ]);
  const booked = await owner.query<{ kind: string }>(`SELECT kind FROM journal_entry e
    JOIN posting p ON p.journal_id = e.id WHERE p.asset = 'FORGED' ORDER BY e.id`);
  expect(booked.map(({ kind }) => kind)).toEqual(["sweep.out", "sweep.short", "deposit.surplus"]);
  expect(await outflows()).toEqual([]);
});

it("freezes as before where the balance falls", async () => {
  const stolen = callOf("PlainToken", "transfer", [ISSUER.address, 30n]);
  const [hash] = await bench.mine([{ from: THIEF, ...stolen }]);
  await bench.mine([]);
  await bench.caughtUp();
  expect(await outflows()).toEqual([{ tx_hash: hash, units: "30" }]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(true);
});
