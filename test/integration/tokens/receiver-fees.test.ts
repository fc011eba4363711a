/** A listed token that takes a fee of who receives, by a log of its own: what stays is what came. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { collectEvidence } from "../../../deposit-watcher/api/evidence.js";
import { depositIdsOfTransaction } from "../../../ledger/deposits/deposit-evidence.js";
import { customerBalances, findDeposit } from "../../../ledger/deposits/deposit-queries.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { WALLET } from "../../helpers/exchange/house.js";
import { callOf, createdAt, depositKey, ISSUER, THIEF, TokenBench, TOKENS } from "./token-bench.js";

const TAKEN = createdAt(8);
const LISTED = [...TOKENS, { symbol: "TAKEN", contractAddress: TAKEN, decimals: 0 }];

let bench: TokenBench;
let alice: Address;

beforeAll(async () => {
  bench = await TokenBench.open(undefined, LISTED);
  await bench.watch(LISTED);
  await bench.deploy();
  const { bytecode = "" } = compileFixture("DepositTokens.sol")["ReceiverFeeToken"] ?? {};
  await bench.mine([{ data: bytecode }, { to: WALLET, value: 10n ** 18n }]);
  await bench.mine([taken("mint", [ISSUER.address, 1_000_000n])]);
  alice = await bench.register("alice");
  await bench.caughtUp();
});
afterAll(() => bench?.close());

const taken = (method: string, args: readonly unknown[]) => ({
  ...callOf("PlainToken", method, args),
  to: TAKEN,
});

const outflows = () =>
  bench.database.query(
    `SELECT tx_hash, wallet, amount_units::text AS units FROM foreign_outflow WHERE asset = 'TAKEN'`,
  );

async function uneven() {
  const { internalBreaks, tokens } = await bench.reconcile();
  expect(internalBreaks).toEqual([]);
  const lines = tokens.find(({ asset }) => asset === "TAKEN")?.lines ?? [];
  return lines.map(({ differenceUnits }) => differenceUnits);
}

async function settled(): Promise<void> {
  await bench.mine([]);
  await bench.caughtUp();
}

it("is credited as what stayed, which its evidence says, too", async () => {
  const [paid = "0x" as Hash32] = await bench.mine([taken("transfer", [alice, 100n])]);
  await settled();
  const balances = await customerBalances(bench.database, parseCustomerId("alice"));
  expect(balances?.find(({ asset }) => asset === "TAKEN")?.availableUnits).toBe(97n);
  expect([await outflows(), await uneven()]).toEqual([[], [0n, 0n]]);
  const {
    ids: [id = ""],
  } = await depositIdsOfTransaction(bench.database, paid);
  const deposit = await findDeposit(bench.database, id);
  if (deposit === undefined) throw new Error("no deposit");
  const { database, node, source } = bench;
  const parts = { database, node, source, contractOf: () => TAKEN };
  const { signal } = new AbortController();
  const { chain } = await collectEvidence(parts, deposit, { signal });
  expect(chain).toMatchObject({ operationsUnits: 97n, balanceAfterUnits: 97n, agrees: true });
  for (const units of [94n, 96n, 98n, 100n]) {
    const other = { ...node, tokenBalances: async () => [0n, units] };
    const still = await collectEvidence({ ...parts, node: other }, deposit, { signal });
    expect([units, still.chain?.agrees]).toEqual([units, false]);
  }
});

it("freezes no hot wallet, whoever sends it", async () => {
  await bench.mine([taken("transfer", [WALLET, 100n])]);
  await settled();
  expect(await outflows()).toEqual([]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(false);
  expect(await uneven()).toEqual([0n, 0n]);
});

it("freezes none with a sweep of ours, which is short", async () => {
  const bob = await bench.register("bob");
  await bench.mine([taken("mint", [bob, 200n]), { to: bob, value: 10n ** 18n }]);
  await settled();
  const fields = { type: 0, chainId: 6940, nonce: 0, gasPrice: 25_000_000n, gasLimit: 300_000n };
  const sweep = { ...fields, ...taken("transfer", [WALLET, 200n]) };
  const raw = await depositKey(1).signTransaction(sweep);
  const { owner } = bench.ledger;
  const hash = await bench.storeSweep(raw, { address: bob, asset: "TAKEN", units: 200n });
  await bench.mine([], [raw]);
  await settled();
  expect(await outflows()).toEqual([]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(false);
  expect(await uneven()).toEqual([0n, 0n]);
  const booked = await owner.query<{ kind: string; units: string }>(
    `SELECT kind, p.amount_units::text AS units FROM journal_entry e
       JOIN posting p ON p.journal_id = e.id
      WHERE e.memo LIKE $1 || '%' AND p.asset = 'TAKEN' ORDER BY e.id`,
    [hash],
  );
  expect(booked).toEqual([
    { kind: "sweep.out", units: "200" },
    { kind: "sweep.short", units: "6" },
    { kind: "sweep.in", units: "194" },
  ]);
});

it("freezes as ever what is taken beyond what is brought", async () => {
  const [hash] = await bench.mine([{ from: THIEF, ...taken("transfer", [ISSUER.address, 50n]) }]);
  await settled();
  expect(await outflows()).toEqual([{ tx_hash: hash, wallet: WALLET, units: "50" }]);
  expect((await readFreeze(bench.database, WALLET)).frozen).toBe(true);
});
