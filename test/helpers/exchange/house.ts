/** A ledger, a fake chain and a lane for tests of the withdrawal worker. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach } from "@jest/globals";
import { type Address, bytesToAddress } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { keccak256 } from "../../../chain/hashes.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { decodeTransaction, type SignedTransaction } from "../../../chain/transaction.js";
import {
  customerAccount,
  NATIVE_ASSET,
  parseCustomerId,
  walletAccount,
} from "../../../ledger/journal/accounts.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import type { LedgerDatabase } from "../../../ledger/database.js";
import { postJournal } from "../../../ledger/journal/journal.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import {
  type AcceptOutcome,
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
  type WithdrawalRequest,
} from "../../../ledger/withdrawals/withdrawals.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import type { LaneContext, LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import { FakeChain, FAKE_CHAIN_ID } from "../chains/fake-chain.js";
import { ANY_REQUEST, laneRules, PERMISSIVE, type RuleFiles } from "../keys/signing.js";
import { openTestLedger, registerTestWallets, type TestLedger } from "../services/ledger.js";
import { PATIENCE_MS } from "../until.js";
import { createPatientNode } from "./patient-node.js";

/** A transaction as the lane sent it. */
export function decodeRaw(raw: string): SignedTransaction {
  return decodeTransaction(parseHexBytes(raw));
}

/** One TOKEN. */
export const TOKEN = 10n ** 18n;

/** What alice has where a test names nothing else. */
const ALICE_ATOKEN = 100n * TOKEN;

/** Key of the tests' hot wallet; no other use. */
export const WALLET_KEY = keccak256(Buffer.from("hot wallet of the withdrawal tests"));

/** Its address. */
export const WALLET = privateKeyToAddress(WALLET_KEY);

/** The states that a withdrawal went through. */
export const statuses = ({ history }: Pick<Withdrawal, "history">) =>
  history.map(({ status }) => status);

const DEFAULT_SETTINGS: LaneSettings = {
  batchSize: 50,
  maxLiveSlots: 4_096,
  scanIntervalMs: 50,
  pollIntervalMs: 20,
  rebroadcastIntervalMs: 1_000,
  retryDelayMs: 1_000,
  receiptPatienceMs: 3_000,
  leaseMs: 3_000,
  gas: {
    marginPercent: 20,
    limitMax: 1_000_000n,
    priceFloorAtoken: 1n,
    priceCapAtoken: 1_000_000_000n,
    feePerPayoutAtoken: TOKEN,
    feePerDayAtoken: 1_000n * TOKEN,
    codeGasInFlight: 4_000_000n,
  },
  stall: { repriceAfterMs: 30_000, giveUpAfterMs: 600_000, alarmAfterMs: 60_000 },
  failures: { failureFeeAtoken: 0n, maxCount: 0, windowMs: 60_000 },
};

/** A clock that tests move. */
export class TestClock implements Clock {
  ms = 1_000_000;
  nowMs(): number {
    return this.ms;
  }
  monotonicMs(): number {
    return this.ms;
  }
}

/** Everything a test needs; close it at its end. */
export class House {
  readonly clock = new TestClock();
  /** What the signer and the lane read; tests change it. */
  readonly files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
  readonly signal = new AbortController().signal;

  /** In the role of the worker. */
  get database(): LedgerDatabase {
    return this.ledger.database;
  }

  private constructor(
    readonly chain: FakeChain,
    readonly ledger: TestLedger,
  ) {}

  static async open(): Promise<House> {
    const chain = new FakeChain();
    chain.mine();
    chain.balances.set(WALLET, 1_000n * TOKEN);
    chain.mine();
    const identity = { chainId: FAKE_CHAIN_ID, genesisHash: chain.blockHash(0) };
    const ledger = await openTestLedger(identity, "worker");
    await registerTestWallets(ledger.database, WALLET);
    await chain.start();
    return new House(chain, ledger);
  }

  /** With money of alice's. */
  static async withAlice(amountAtoken = ALICE_ATOKEN): Promise<House> {
    const house = await House.open();
    await house.fund("alice", amountAtoken);
    return house;
  }

  async close(): Promise<void> {
    await this.ledger.drop();
    await this.chain.stop();
  }

  /** A lane with a worker's name of its own. */
  lane(settings: Partial<LaneSettings> = {}, timeoutMs = PATIENCE_MS): Lane {
    return new Lane(this.context(settings, timeoutMs), randomUUID());
  }

  /** A lane with keys and rules of its own. */
  laneWith(rules: Partial<LaneContext>): Lane {
    return new Lane({ ...this.context(), ...rules }, randomUUID());
  }

  /** A lane of another wallet, which is registered; by its key. */
  laneOf(privateKey: Uint8Array, settings: Partial<LaneSettings> = {}): Lane {
    return new Lane(this.context(settings, PATIENCE_MS, privateKey), randomUUID());
  }

  context(
    settings: Partial<LaneSettings> = {},
    timeoutMs = PATIENCE_MS,
    privateKey: Uint8Array = WALLET_KEY,
  ): LaneContext {
    const merged = { ...DEFAULT_SETTINGS, ...settings };
    const rpc = createJsonRpcClient({ url: this.chain.url, timeoutMs });
    const log = createLogger({ component: "test", level: "silent" });
    const wallet = privateKeyToAddress(privateKey);
    return {
      ledger: createLaneLedger(this.database),
      guard: createLaneGuard({ database: this.database, wallet, log }),
      node: createPatientNode(rpc, {
        chainId: FAKE_CHAIN_ID,
        genesisHash: this.chain.blockHash(0),
      }),
      ...laneRules({
        privateKey,
        chainId: FAKE_CHAIN_ID,
        limits: {
          gasPriceCapAtoken: merged.gas.priceCapAtoken,
          gasLimitMax: merged.gas.limitMax,
          feePerPayoutAtoken: merged.gas.feePerPayoutAtoken,
        },
        sql: this.database,
        files: this.files,
      }),
      hasKey: () => true,
      chainId: FAKE_CHAIN_ID,
      settings: merged,
      clock: this.clock,
      log,
    };
  }

  /** Makes a customer with an available balance. */
  async fund(customer: string, amountAtoken: bigint): Promise<void> {
    const customerId = parseCustomerId(customer);
    await this.ledger.owner.transaction(async (tx) => {
      await tx.query(`INSERT INTO customer (id) VALUES ($1) ON CONFLICT DO NOTHING`, [customerId]);
      if (amountAtoken === 0n) return;
      await postJournal(tx, {
        kind: "test.fund",
        idemKey: `fund:${randomUUID()}`,
        effectiveHeight: 0,
        postings: [
          {
            asset: NATIVE_ASSET,
            debit: walletAccount(WALLET),
            credit: customerAccount(customerId),
            amountUnits: amountAtoken,
          },
        ],
      });
    });
  }

  async request(fields: Partial<WithdrawalRequest> = {}): Promise<AcceptOutcome> {
    const [outcome] = await acceptWithdrawals(this.database, [requestOf(fields)], {
      ...ANY_REQUEST,
      policy: this.files.policy,
    });
    if (outcome === undefined) throw new Error("no outcome");
    return outcome;
  }

  /** Requests a withdrawal that must be accepted. */
  async accept(fields: Partial<WithdrawalRequest> = {}): Promise<Withdrawal> {
    const outcome = await this.request(fields);
    if (outcome.outcome === "refused") throw new Error(outcome.refusal);
    return outcome.withdrawal;
  }

  /** Accepts a withdrawal to an address of its own. */
  async acceptTo(amountAtoken = TOKEN): Promise<{ id: WithdrawalId; to: Address }> {
    const to = freshAddress();
    const fields = { destination: to, destinationText: to, amountUnits: amountAtoken };
    const { id } = await this.accept(fields);
    return { id, to };
  }

  /** Rounds with blocks between them, and time that passes. */
  async pass(
    lane: Lane,
    { rounds = 2, stepMs = 2_000 }: { rounds?: number; stepMs?: number } = {},
  ): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      this.clock.ms += stepMs;
      await lane.runRound(this.signal);
      this.chain.mine();
    }
    await lane.runRound(this.signal);
  }

  /** What waits for its next try is looked at at once. */
  async hurry(): Promise<void> {
    await this.database.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
  }

  async read(id: WithdrawalId): Promise<Withdrawal> {
    const withdrawal = await findWithdrawal(this.database, id);
    if (withdrawal === undefined) throw new Error(`no withdrawal ${id}`);
    return withdrawal;
  }

  /** Available and held balance of a customer. */
  async balance(customer: string): Promise<{ available: bigint; held: bigint }> {
    const rows = await this.database.query<{ available: string; held: string }>(
      `SELECT available_units::text AS available, held_units::text AS held
         FROM customer_balance WHERE customer_id = $1`,
      [customer],
    );
    return { available: BigInt(rows[0]?.available ?? "0"), held: BigInt(rows[0]?.held ?? "0") };
  }

  /** Debits minus credits of an account. */
  async accountAtoken(account: string): Promise<bigint> {
    const rows = await this.database.query<{ sum: string }>(
      `SELECT coalesce(sum(CASE WHEN debit = $1 THEN amount_units ELSE 0 END)
                     - sum(CASE WHEN credit = $1 THEN amount_units ELSE 0 END), 0)::text AS sum
         FROM posting WHERE debit = $1 OR credit = $1`,
      [account],
    );
    return BigInt(rows[0]?.sum ?? "0");
  }

  async isFrozen(): Promise<boolean> {
    const rows = await this.database.query<{ frozen: boolean }>(
      `SELECT frozen FROM signing_freeze WHERE wallet = $1`,
      [WALLET],
    );
    return rows[0]?.frozen ?? false;
  }
}

/**
 * Gives each test a house of its own in which alice has 100 TOKEN, and closes it behind the test. Hooks of a
 * file's own that stand behind the call find it open before a test, and closed after it.
 */
export function houseForEachTest(take: (house: House) => void): void {
  let house: House | undefined;
  beforeEach(async () => {
    house = undefined;
    house = await House.withAlice();
    take(house);
  });
  afterEach(() => house?.close());
}

/** A fresh destination nobody else uses. */
export function freshAddress(): Address {
  return bytesToAddress(keccak256(Buffer.from(randomUUID())).subarray(12));
}

/** A request with fields of its own where none are given. */
export function requestOf(fields: Partial<WithdrawalRequest> = {}): WithdrawalRequest {
  const destination = fields.destination ?? freshAddress();
  return {
    idempotencyKey: randomUUID(),
    customerId: parseCustomerId("alice"),
    asset: NATIVE_ASSET,
    destination,
    destinationText: destination,
    amountUnits: TOKEN,
    ...fields,
  };
}
