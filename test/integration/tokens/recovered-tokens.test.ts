/** A ledger that lost its tokens with everything else: what the chain shows of them is booked like coins. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { type Hash32, MAX_WORD } from "../../../chain/hex.js";
import { readWalletTransactions } from "../../../cli/commands/wallets/wallet-transactions.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { declareRecovery } from "../../../ledger/guard/recovery-incident.js";
import { applyRecovery } from "../../../ledger/recovery/recovery.js";
import { planRecovery, type RecoveryChain } from "../../../ledger/recovery/recovery-plan.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { derivation } from "../../helpers/services/watcher.js";
import { freshAddress, WALLET } from "../../helpers/exchange/house.js";
import {
  callOf,
  claimant,
  contractAt,
  createdAt,
  depositKey,
  THIEF,
  TokenBench,
  TOKENS,
} from "./token-bench.js";

const { signal } = new AbortController();
const ALICE = parseAddress(depositKey(0).address.toLowerCase());
const BOB = freshAddress();

let bench: TokenBench;
/** What the hot wallet paid to BOB while the ledger of then knew of it. */
let payment: Hash32 | undefined;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [WALLET, 500n]),
    callOf("PlainToken", "mint", [ALICE, 1_000n]),
    { to: WALLET, value: 10n ** 18n },
  ]);
  [payment] = await bench.mine([{ from: THIEF, ...callOf("PlainToken", "transfer", [BOB, 77n]) }]);
  await bench.mine([]);
  await bench.mine([]);
});
afterEach(() => bench.close());

/** The empty ledger is closed; `between` is done before a person recovers it. */
async function recover(between: () => Promise<unknown>): Promise<void> {
  const database = bench.ledger.owner;
  await declareRecovery(database, {
    reason: "all is lost",
    operator: "test",
    nextAddressIndex: 0,
  });
  await between();
  const chain: RecoveryChain = {
    headHeight: () => bench.node.blockNumber({ signal }),
    nonceAt: (wallet, at) => bench.node.getTransactionCount(wallet, at, { signal }),
    queuedNonces: (wallet) => bench.node.queuedNonces(wallet, { signal }),
    transactions: (wallet, range) =>
      readWalletTransactions(bench.node, wallet, { ...range, signal }),
    areActive: async (addresses) => addresses.map((address) => address === ALICE),
    addressAt: (index) => derivation.addressAt(index),
  };
  const wallets = await listWallets(database);
  const plan = await planRecovery({ database, chain, wallets, tokens: TOKENS });
  if (plan === undefined) throw new Error("nothing to recover");
  await applyRecovery(database, plan, "test");
}

/** What came and what was paid is there by itself, each once, and a person can say whose it was. */
async function expectWhole(): Promise<void> {
  await bench.caughtUp();
  const { clean, tokens } = await bench.reconcile();
  const plain = tokens.find(({ asset }) => asset === "PLAIN");
  expect(plain?.lines).toMatchObject([
    { ledgerUnits: 423n, chainUnits: 423n },
    { ledgerUnits: 1_000n, chainUnits: 1_000n },
  ]);
  expect(clean).toBe(true);
  const address = { action: "assign-address", address: ALICE, withDeposits: true } as const;
  const customerId = parseCustomerId("alice");
  await bench.decide(bench.ledger.owner, { ...address, customerId }, "her records");
  const claim = { action: "claim-payment", hash: String(payment), idempotencyKey: "w" } as const;
  await bench.decide(bench.ledger.owner, { ...claim, customerId }, "her records");
  const balances = await customerBalances(bench.database, customerId);
  expect(balances?.find(({ asset }) => asset === "PLAIN")).toMatchObject({ availableUnits: 923n });
  expect((await bench.reconcile()).clean).toBe(true);
}

it("books tokens from the first block on where the services stood still until it was recovered", async () => {
  await recover(async () => undefined);
  await bench.watch();
  await expectWhole();
});

it("books tokens that the list of a running watcher did not have yet", async () => {
  await recover(() => bench.watch(TOKENS.filter(({ symbol }) => symbol !== "PLAIN")));
  await expectWhole();
});

it("books tokens from the first block on where the watcher met the closed ledger", async () => {
  await recover(() => bench.watch());
  await expectWhole();
});

it("gives nobody an address with deposits of a paused token, nor half of that", async () => {
  await recover(() => bench.watch());
  await bench.caughtUp();
  const sql = bench.ledger.owner;
  const setPaused = (paused: boolean) =>
    sql.query(
      `UPDATE token_state SET paused = $1, reason = 'other code', changed_by = 'test'
        WHERE asset = 'PLAIN'`,
      [paused],
    );
  const customerId = parseCustomerId("alice");
  const assign = () => {
    const terms = { action: "assign-address", address: ALICE, withDeposits: true } as const;
    return bench.decide(sql, { ...terms, customerId }, "her records");
  };
  await setPaused(true);
  await expect(assign()).rejects.toMatchObject({
    code: "INVALID_DECISION",
    message: expect.stringContaining("PLAIN is paused"),
  });
  expect(await customerBalances(bench.database, customerId)).toBeUndefined();
  expect(await sql.query(`SELECT 1 FROM address_assignment`)).toEqual([]);
  await setPaused(false);
  await assign();
  const balances = await customerBalances(bench.database, customerId);
  expect(balances?.find(({ asset }) => asset === "PLAIN")).toMatchObject({
    availableUnits: 1_000n,
  });
});

it("books no more of a token than there can be, whatever its contract says that a wallet gave", async () => {
  // The issuer's next contract stands behind a listed token's proxy, and the wallet calls it.
  await bench.mine([{ data: claimant(WALLET, 20) }]);
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [createdAt(11)])]);
  await bench.mine([{ from: THIEF, to: contractAt("UpgradableProxy") }]);
  await recover(async () => undefined);
  const rows = await bench.ledger.owner.query<{ units: string }>(
    `SELECT amount_units::text AS units FROM posting WHERE asset = 'PROXY'`,
  );
  expect(rows).toEqual([{ units: `${MAX_WORD}` }]);
});
