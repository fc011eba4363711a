/** A deposit watcher on a fake chain and a ledger of its own, for tests. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HDNodeWallet, Mnemonic } from "ethers";
import type { Address } from "../../../chain/address.js";
import { errorCode, present } from "../../../chain/errors.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import {
  type AddressDerivation,
  createAddressDerivation,
} from "../../../chain/derivation/address-derivation.js";
import type { TokenEntry } from "../../../chain/token-list.js";
import { TokenBook, type TokenBookParts } from "../../../deposit-watcher/tokens/token-book.js";
import { Watcher, type WatcherParts } from "../../../deposit-watcher/watcher.js";
import { createWatcherMetrics } from "../../../deposit-watcher/watcher-metrics.js";
import { type CustomerId, parseCustomerId } from "../../../ledger/journal/accounts.js";
import {
  type DepositAddress,
  registerAddresses,
} from "../../../ledger/deposits/deposit-addresses.js";
import { listDeposits } from "../../../ledger/deposits/deposit-queries.js";
import { openIncident } from "../../../ledger/incidents.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import {
  createDataApiClient,
  type DataApiClient,
} from "../../../rpc-client/data-api/data-api-client.js";
import { createEvmClient, type EvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { change, FakeChain, testAddress } from "../chains/fake-chain.js";
import { openTestLedger, registerTestWallets, silentLog, type TestLedger } from "./ledger.js";
import { until } from "../until.js";

/** The hot wallet of every test. */
export const HOT = testAddress(0x407);

/** Somebody outside with many coins. */
export const STRANGER = testAddress(0x57a);

/** A watcher that follows coins alone. */
export const NO_TOKENS = {
  tokens: [],
  checkCodes: async () => [],
  openWaiting: async () => undefined,
  refresh: async () => undefined,
};

/** What genesis gives to the hot wallet. */
export const OPENING_ATOKEN = 1_000_000n;

const phrase = "test test test test test test test test test test test junk";
const account = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(phrase), "m/44'/60'/0'/0");

/** Derivation of the addresses of every test. */
export const derivation: AddressDerivation = createAddressDerivation(account.neuter().extendedKey);

/** A book of tokens whose openings are booked, as they are some time after a watcher has begun. */
export async function openTokenBook(
  parts: TokenBookParts,
  entries: readonly TokenEntry[],
  { signal }: { readonly signal: AbortSignal },
): Promise<TokenBook> {
  const book = await TokenBook.open(parts, entries);
  // A ledger in recovery has lost its tokens with the rest: what was before is booked once it is open.
  if ((await openIncident(parts.database))?.kind === "RECOVERY") return book;
  await book.openWaiting({ signal }).catch((error: unknown) => {
    // A chain that has lost the booked block tells nothing: the watcher finds that out, and opens it later.
    if (errorCode(error) !== "BAD_ANSWER") throw error;
  });
  return book;
}

/** Registers one address. */
export async function registerAddress(
  database: SqlDatabase,
  customerId: CustomerId,
  issue: Parameters<typeof registerAddresses>[2],
): Promise<DepositAddress> {
  const [address] = await registerAddresses(database, [customerId], issue);
  return present(address, "address that was registered");
}

/** A watcher that runs until it is stopped. */
export interface RunningWatcher {
  readonly watcher: Watcher;
  /** Faults that ended one of its loops; empty on the usual way. */
  readonly faults: unknown[];
  stop(): Promise<void>;
}

/** Everything one test needs; `close` ends all of it. */
export class WatcherBench {
  readonly #running = new Set<RunningWatcher>();
  /** Where set, watchers that start from then on ask it, too. */
  secondNode: WatcherParts["secondNode"];

  private constructor(
    readonly chain: FakeChain,
    readonly ledger: TestLedger,
    readonly rpc: JsonRpcClient,
    readonly node: EvmClient,
    readonly source: DataApiClient,
    /** Home of the watcher: only what it remembers of its ledger lies there. */
    readonly home: string,
    readonly guard: LedgerGuard,
  ) {}

  /** A chain with genesis (block 0), an empty ledger, no watcher running yet. */
  static async open(): Promise<WatcherBench> {
    const chain = new FakeChain();
    const genesis = [
      change({ reason: "GENESIS", to: HOT, amountAtoken: OPENING_ATOKEN }),
      change({ reason: "GENESIS", to: STRANGER, amountAtoken: 10n ** 24n }),
    ];
    chain.mine([], genesis);
    await chain.start();
    const identity = { genesisHash: chain.genesisHash, chainId: 6940n };
    const ledger = await openTestLedger(identity, "watcher");
    await registerTestWallets(ledger.database, HOT);
    const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 30_000 });
    const source = createDataApiClient({
      url: chain.url,
      network: { blockchain: "token", network: "testnet" },
      timeoutMs: 30_000,
    });
    const home = mkdtempSync(join(tmpdir(), "causeway-watcher-"));
    const guard = await WatcherBench.openGuard(ledger.database, home);
    return new WatcherBench(chain, ledger, rpc, createEvmClient(rpc), source, home, guard);
  }

  /** The guard of a watcher process on a home. */
  static openGuard(database: SqlDatabase, home: string): Promise<LedgerGuard> {
    return LedgerGuard.open({ database, home, reporter: "test" });
  }

  /** Starts a watcher; several may run at once. */
  start(
    database: SqlDatabase = this.ledger.database,
    guard = this.guard,
    leaseMs = 3_000,
    {
      mostListed,
      ...own
    }: Partial<Pick<WatcherParts, "node" | "source" | "metrics" | "tokens" | "book" | "log">> &
      Pick<WatcherParts["options"], "mostListed"> = {},
  ): RunningWatcher {
    const watcher = new Watcher({
      database,
      guard,
      node: this.node,
      secondNode: this.secondNode,
      source: this.source,
      book: new AddressBook(),
      tokens: NO_TOKENS,
      identity: { genesisHash: this.chain.genesisHash, chainId: 6940n },
      log: silentLog,
      metrics: createWatcherMetrics(createMetrics({ processMetrics: false })),
      options: {
        pollIntervalMs: 100,
        readsInFlight: 8,
        staleHeadsAllowed: 3,
        leaseMs,
        owner: randomUUID(),
        ...(mostListed === undefined ? {} : { mostListed }),
      },
      ...own,
    });
    const controller = new AbortController();
    const faults: unknown[] = [];
    const note = (error: unknown) => void faults.push(error);
    const loops = [
      watcher.run(controller.signal).catch(note),
      watcher.runBackfills(controller.signal).catch(note),
    ];
    const running = {
      watcher,
      faults,
      stop: async () => {
        this.#running.delete(running);
        controller.abort();
        await Promise.all(loops);
      },
    };
    this.#running.add(running);
    return running;
  }

  /** Registers an address as the API does. */
  register(customer: string): Promise<DepositAddress> {
    return registerAddress(this.ledger.database, parseCustomerId(customer), {
      deriveAddress: (index) => derivation.addressAt(index),
      issuedBelow: this.guard.nextAddressIndex,
    });
  }

  /** Mines a block in which the stranger pays each address. */
  pay(...payments: readonly (readonly [Address, bigint])[]): void {
    this.chain.mine(payments.map(([to, amount]) => this.chain.payment(STRANGER, to, amount)));
  }

  /** Waits until the cursor stands at the head. */
  async caughtUp(): Promise<void> {
    const { head } = this.chain;
    await until(async () => (await readCursor(this.ledger.database)).height >= head, {
      timeoutMs: 10_000,
      what: `the cursor reaches ${head}`,
    });
  }

  /** Waits until no address waits for its past to be booked. */
  async backfilled(): Promise<void> {
    const waiting = `SELECT 1 FROM deposit_address WHERE NOT backfilled LIMIT 1`;
    await until(async () => (await this.ledger.database.query(waiting)).length === 0, {
      timeoutMs: 10_000,
      what: "all addresses are backfilled",
    });
  }

  /** Changes a setting of the database, for sessions that begin now: the others end. */
  async alterDatabase(setting: string): Promise<void> {
    const { owner } = this.ledger;
    const [row] = await owner.query<{ name: string }>("SELECT current_database() AS name");
    await owner.transaction(async (tx) => {
      await tx.query("SET TRANSACTION READ WRITE");
      await tx.query("SET LOCAL statement_timeout = 0");
      await tx.query(`ALTER DATABASE ${row?.name} ${setting}`);
    });
    await owner.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  }

  /** Id, status and amount of all deposits, in the order of the list. */
  async deposits(): Promise<string[]> {
    const rows = await listDeposits(this.ledger.database, { afterSeq: 0, limit: 1_000 });
    return rows.map((row) => `${row.id} ${row.customerId} ${row.status} ${row.amountUnits}`);
  }

  /** Balance of an account: debits - credits. */
  async accountAtoken(code: string): Promise<bigint> {
    const [row] = await this.ledger.database.query<{ balance: string }>(
      `SELECT coalesce(sum(CASE WHEN debit = $1 THEN amount_units ELSE -amount_units END), 0)
              AS balance FROM posting WHERE debit = $1 OR credit = $1`,
      [code],
    );
    return BigInt(row?.balance ?? "0");
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.stop()));
    this.rpc.close();
    this.source.close();
    await this.chain.stop();
    await this.ledger.drop();
    rmSync(this.home, { recursive: true, force: true });
  }
}
