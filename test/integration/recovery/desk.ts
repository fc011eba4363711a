/**
 * An exchange on a fake chain whose database can be lost: watcher and worker of one home, and a person
 * who types commands. Nothing runs by itself: tests say when each does its work.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { HDNodeWallet, Mnemonic } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { createAddressDerivation } from "../../../chain/derivation/address-derivation.js";
import { keccak256 } from "../../../chain/hashes.js";
import { present } from "../../../chain/errors.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { TokenEntry } from "../../../chain/token-list.js";
import { createProgram } from "../../../cli/program/program.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { Watcher } from "../../../deposit-watcher/watcher.js";
import { createWatcherMetrics } from "../../../deposit-watcher/watcher-metrics.js";
import { NATIVE_ASSET, parseCustomerId } from "../../../ledger/journal/accounts.js";
import { type ChainIdentity, type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import type { DepositAddress } from "../../../ledger/deposits/deposit-addresses.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { openIncident } from "../../../ledger/incidents.js";
import { grantLedgerRoles } from "../../../ledger/roles.js";
import { foundInHome, readHomeWallets } from "../../../ledger/wallets/home-wallets.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import { registerWallets } from "../../../ledger/wallets/wallet-registry.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { endMoves, type RefusedEnding } from "../../../ledger/treasury/moves.js";
import {
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import { createDataApiClient } from "../../../rpc-client/data-api/data-api-client.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import type { LaneContext, LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import type { LaneKey } from "../../../withdrawal-worker/lanes.js";
import { signerWithoutKey } from "../../../withdrawal-worker/wallet-keys.js";
import { ANY_REQUEST, laneRules, PERMISSIVE, type RuleFiles } from "../../helpers/keys/signing.js";
import { change, FAKE_CHAIN_ID, FakeChain, testAddress } from "../../helpers/chains/fake-chain.js";
import {
  createLedgerDatabase,
  roleUrl,
  silentLog,
  TEST_PASSWORDS,
} from "../../helpers/services/ledger.js";
import { copyTestDatabase } from "../../helpers/services/postgres.js";
import { openTokenBook, registerAddress } from "../../helpers/services/watcher.js";
import { PATIENCE_MS, until } from "../../helpers/until.js";
import { GAS, LANE, TOKEN, withoutWaiting } from "./desk-settings.js";
import { createPatientClient, createPatientNode } from "../../helpers/exchange/patient-node.js";

export { TOKEN } from "./desk-settings.js";

/** Key of the first hot wallet. */
export const KEY = keccak256(Buffer.from("hot wallet of the recovery tests"));

/** The hot wallet. */
export const WALLET = privateKeyToAddress(KEY);

/** Somebody outside with many coins. */
export const STRANGER = testAddress(0x57a);

const phrase = "test test test test test test test test test test test junk";
const XPUB = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(phrase), "m/44'/60'/0'/0").neuter()
  .extendedKey;

/** The deposit addresses of every test. */
export const derivation = createAddressDerivation(XPUB);

/** What one command printed and how it ended. */
export interface CommandResult {
  readonly code: number;
  readonly text: string;
}

/** Everything one test needs; `close` ends all of it. */
export class Desk {
  readonly home = mkdtempSync(join(tmpdir(), "causeway-desk-"));
  readonly signal = new AbortController().signal;
  /** Further variables of the commands that are typed. */
  readonly env: Record<string, string> = {};
  /** Nothing is forbidden unless a test says so. */
  readonly files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
  /** Of the chain's token, where there is one. */
  tokens: readonly TokenEntry[] = [];
  /** Of lanes that are made from now on, which keep each other out for so long; else they do not. */
  leaseMs: number | undefined;
  readonly #drops: (() => Promise<void>)[] = [];
  readonly #opened: LedgerDatabase[] = [];
  #database: LedgerDatabase | undefined;
  #watcher: LedgerDatabase | undefined;
  #worker: LedgerDatabase | undefined;
  readonly #lanes = new Map<Address, Lane>();
  #url = "";
  #nowMs = 1_000_000;

  private constructor(readonly chain: FakeChain) {}

  /** A chain whose genesis gives the hot wallet 100 TOKEN, and an empty ledger. */
  static async open(salt?: string): Promise<Desk> {
    const chain = new FakeChain(salt);
    Desk.begin(chain);
    await chain.start();
    const desk = new Desk(chain);
    mkdirSync(join(desk.home, "config"));
    writeFileSync(
      join(desk.home, "config", "hot-wallet.json"),
      JSON.stringify({ address: WALLET }),
    );
    writeFileSync(join(desk.home, "config", "deposit.xpub"), `${XPUB}\n`, { mode: 0o600 });
    await desk.useEmptyDatabase();
    return desk;
  }

  /** As `open`, with alice, who has 10 TOKEN, and a worker that has looked around once. */
  static async openWithAlice(): Promise<Desk> {
    const desk = await Desk.open();
    const { address } = await desk.register("alice");
    desk.pay([address, 10n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    await desk.lane().runRound(desk.signal);
    return desk;
  }

  private static begin(chain: FakeChain): void {
    chain.mine(
      [],
      [
        change({ reason: "GENESIS", to: WALLET, amountAtoken: 100n * TOKEN }),
        change({ reason: "GENESIS", to: STRANGER, amountAtoken: 10n ** 6n * TOKEN }),
      ],
    );
  }

  /** As its owner, for what tests look at. */
  get database(): LedgerDatabase {
    return present(this.#database, "a database");
  }

  /** In the role of the watcher. */
  get watcherDatabase(): LedgerDatabase {
    return present(this.#watcher, "a database");
  }

  get #identity(): ChainIdentity {
    return { genesisHash: this.chain.genesisHash, chainId: FAKE_CHAIN_ID };
  }

  /** A database that nobody wrote to. */
  async useEmptyDatabase(): Promise<void> {
    const { url, drop } = await createLedgerDatabase(this.#identity);
    this.#drops.push(drop);
    await this.useDatabase(url);
  }

  /** A copy of the database as it stands now. @returns its URL */
  async backup(): Promise<string> {
    const { url, drop } = await copyTestDatabase(this.#url);
    this.#drops.push(drop);
    return url;
  }

  /** Every process ends, and starts again on this database. */
  async useDatabase(url: string): Promise<void> {
    this.#url = url;
    this.#lanes.clear();
    const owner = await this.#open(url);
    // A backup holds the rights of its roles as rows of another database: they are given anew.
    await grantLedgerRoles(owner, TEST_PASSWORDS);
    this.#database = owner;
    this.#watcher = await this.#open(roleUrl(url, "watcher"));
    this.#worker = await this.#open(roleUrl(url, "worker"));
    const found = readHomeWallets(this.home).map((wallet) => foundInHome(wallet, "test"));
    await registerWallets(this.#watcher, found);
  }

  async #open(url: string): Promise<LedgerDatabase> {
    const identity = this.#identity;
    const opened = await openLedger({ url, log: silentLog, signal: this.signal, identity });
    this.#opened.push(opened);
    return opened;
  }

  guard(): Promise<LedgerGuard> {
    return LedgerGuard.open({ database: this.watcherDatabase, home: this.home, reporter: "test" });
  }

  /** Gives an address to a customer, as the API does. */
  async register(customer: string, key = derivation): Promise<DepositAddress> {
    const guard = await this.guard();
    const address = await registerAddress(this.watcherDatabase, parseCustomerId(customer), {
      deriveAddress: (index) => key.addressAt(index),
      issuedBelow: guard.nextAddressIndex,
    });
    await guard.beforeTelling({ addresses: [address] });
    return address;
  }

  /** Mines a block in which the stranger pays each address. */
  pay(...payments: readonly (readonly [Address, bigint])[]): void {
    this.chain.mine(payments.map(([to, amount]) => this.chain.payment(STRANGER, to, amount)));
  }

  /** Runs a watcher from its start, or with what it knows, until it stands at the head, or is halted. */
  async watch(given?: AddressBook, kept?: LedgerGuard): Promise<void> {
    const rpc = createPatientClient(this.chain.url);
    const source = createDataApiClient({
      url: this.chain.url,
      network: { blockchain: "token", network: "testnet" },
      timeoutMs: PATIENCE_MS,
    });
    const guard = kept ?? (await this.guard());
    const node = createEvmClient(rpc);
    const database = this.watcherDatabase;
    const parts = { database, node, log: silentLog };
    const tokens = await openTokenBook(parts, this.tokens, this);
    const watcher = new Watcher({
      database,
      guard,
      node,
      source,
      book: given ?? new AddressBook(tokens.assets()),
      tokens,
      identity: { genesisHash: this.chain.genesisHash, chainId: FAKE_CHAIN_ID },
      log: silentLog,
      metrics: createWatcherMetrics(createMetrics({ processMetrics: false })),
      options: {
        pollIntervalMs: 100,
        readsInFlight: 8,
        staleHeadsAllowed: 3,
        // A backup holds the lease of the watcher of then, as below.
        leaseMs: 1_000,
        owner: randomUUID(),
      },
    });
    const controller = new AbortController();
    const faults: unknown[] = [];
    const note = (error: unknown) => void faults.push(error);
    const loops = [
      watcher.run(controller.signal).catch(note),
      watcher.runBackfills(controller.signal).catch(note),
    ];
    const waiting = `SELECT 1 FROM deposit_address WHERE NOT backfilled
                      UNION ALL SELECT 1 FROM wallet WHERE NOT past_booked LIMIT 1`;
    try {
      await until(
        async () => {
          if (faults.length > 0) throw faults[0];
          // The database is asked once the watcher has come so far: it does its work there meanwhile.
          const { incident, cursorHeight } = watcher.status;
          if (incident === undefined && cursorHeight < this.chain.head) return false;
          const isPastBooked = (await this.database.query(waiting)).length === 0;
          if (incident === undefined && !isPastBooked) return false;
          if ((await openIncident(this.database)) !== undefined) return true;
          return (await readCursor(this.database)).height === this.chain.head && isPastBooked;
        },
        { timeoutMs: 20_000, what: "the watcher stands at the head" },
      );
    } finally {
      controller.abort();
      await Promise.all(loops);
      rpc.close();
      source.close();
    }
  }

  /** The chain comes back without the blocks above a height, and goes on; the watcher halts on it. */
  async loseAbove(height: number): Promise<void> {
    const lost = this.chain.head;
    this.chain.rollBack(height);
    while (this.chain.head <= lost) this.chain.mine();
    await this.watch();
  }

  /** The first wallet's lane; a new one after each change of the database. */
  lane(): Lane {
    return this.laneOf(KEY);
  }

  /** The lane of a key's wallet, or, where the home lacks the key, of the wallet alone. */
  laneOf(key: Uint8Array, hasKey = true): Lane {
    const wallet = privateKeyToAddress(key);
    const known = this.#lanes.get(wallet);
    if (known !== undefined) return known;
    const { signer } = this.rulesOf(key);
    const lane = this.makeLane(wallet, {
      signer: hasKey ? signer : signerWithoutKey(wallet),
      hasKey: () => hasKey,
    });
    this.#lanes.set(wallet, lane);
    return lane;
  }

  /** In the role of the worker. */
  get workerDatabase(): LedgerDatabase {
    return present(this.#worker, "a database");
  }

  /** Signer and rules over a key. */
  rulesOf(key: Uint8Array) {
    return laneRules({
      privateKey: key,
      chainId: FAKE_CHAIN_ID,
      limits: { gasPriceCapAtoken: GAS.priceCapAtoken, gasLimitMax: GAS.limitMax },
      sql: this.workerDatabase,
      files: this.files,
      depositAddressAt: (index) => derivation.addressAt(index),
      contractOf: (asset) => this.tokens.find(({ symbol }) => symbol === asset)?.contractAddress,
    });
  }

  /** A lane of a wallet with a name of its own. */
  makeLane(wallet: Address, key: LaneKey, given: Partial<LaneSettings & LaneContext> = {}): Lane {
    const database = this.workerDatabase;
    const { policy, killSwitch, screener } = this.rulesOf(KEY);
    const { leaseMs = this.leaseMs, ledger = createLaneLedger(database) } = given;
    const parts = {
      policy,
      killSwitch,
      screener,
      guard: createLaneGuard({ database, wallet, log: silentLog }),
      node: createPatientNode(createPatientClient(this.chain.url), {
        chainId: FAKE_CHAIN_ID,
        genesisHash: this.chain.genesisHash,
      }),
      chainId: FAKE_CHAIN_ID,
      settings: { ...LANE, ...(leaseMs !== undefined && { leaseMs }), ...given },
      clock: { nowMs: () => this.#nowMs, monotonicMs: () => this.#nowMs },
      log: silentLog,
    };
    const context = Object.assign(key, parts, given, {
      ledger: leaseMs === undefined ? withoutWaiting(ledger) : ledger,
    });
    return new Lane(context, randomUUID());
  }

  /** A keystore of the home, as far as no key is needed: the file that names its wallet. */
  writeKeystore(name: string, wallet: Address): void {
    const file = join(this.home, "config", name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ address: wallet }));
  }

  /** Every process of the home ends and starts again. */
  restart(): Promise<void> {
    return this.useDatabase(this.#url);
  }

  /** Rounds of the worker, a block after each: what is accepted is paid and booked. */
  async work(rounds = 4, lanes: readonly Lane[] = [this.lane()]): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(lanes.map((lane) => lane.runRound(this.signal)));
      this.chain.mine();
      this.#nowMs += 2_000;
    }
  }

  async request(fields: {
    readonly key: string;
    readonly customer: string;
    readonly to: Address;
    /** Units of the token where one is named. */
    readonly amountAtoken: bigint;
    readonly asset?: string;
  }): Promise<Withdrawal> {
    const [outcome] = await acceptWithdrawals(
      this.workerDatabase,
      [
        {
          idempotencyKey: fields.key,
          customerId: parseCustomerId(fields.customer),
          asset: fields.asset ?? NATIVE_ASSET,
          destination: fields.to,
          destinationText: fields.to,
          amountUnits: fields.amountAtoken,
        },
      ],
      { ...ANY_REQUEST, policy: this.files.policy },
    );
    if (outcome === undefined || outcome.outcome === "refused") {
      throw new Error(`refused: ${outcome?.refusal}`);
    }
    return outcome.withdrawal;
  }

  /** As the treasury's round does; what the books refuse is thrown. */
  endMoves(bound: { readonly limit?: number } = {}): Promise<number> {
    const onRefused = ({ error }: RefusedEnding) => {
      throw error;
    };
    return endMoves(this.workerDatabase, { ...bound, onRefused });
  }

  async read(id: WithdrawalId): Promise<Withdrawal> {
    const found = await findWithdrawal(this.database, id);
    if (found === undefined) throw new Error(`no withdrawal ${id}`);
    return found;
  }

  async availableAtoken(customer: string): Promise<bigint | undefined> {
    const balances = await customerBalances(this.database, parseCustomerId(customer));
    return balances?.[0]?.availableUnits;
  }

  /** What somebody types: `causeway <words> --home ...`. */
  async causeway(...words: readonly string[]): Promise<CommandResult> {
    const lines: string[] = [];
    let code = -1;
    const print = (line: string) => void lines.push(line);
    const program = createProgram({
      version: "0",
      env: {
        ...this.env,
        DATABASE_URL: roleUrl(this.#url, "operator"),
        CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: this.chain.url,
        CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS: "20",
      },
      signal: this.signal,
      print,
      warn: print,
      setExitCode: (given) => {
        code = given;
      },
    });
    await program.parseAsync(["node", "causeway", ...words, "--home", this.home]);
    return { code, text: lines.join("\n") };
  }

  /** What reconcile finds; nothing where all is even. */
  async breaks(): Promise<string> {
    const { code, text } = await this.causeway("reconcile");
    return code === 0 ? "" : text;
  }

  /** What is missing and nobody has explained; below zero what is there and nobody's. */
  async breakAtoken(): Promise<bigint> {
    const [row] = await this.database.query<{ units: string }>(
      `SELECT coalesce(sum(CASE WHEN debit = 'asset:break' THEN amount_units
                                ELSE -amount_units END), 0)::text AS units
         FROM posting WHERE 'asset:break' IN (debit, credit)`,
    );
    return BigInt(row?.units ?? "0");
  }

  /** A payment that is sent, not mined, and cancelled: the transfer in its place is mined. */
  async cancelOnTheWay(
    fields: Omit<Parameters<Desk["request"]>[0], "key">,
  ): Promise<{ readonly wanted: Withdrawal; readonly payment: string }> {
    this.chain.unmined.add(fields.to);
    const wanted = await this.request({ key: "w", ...fields });
    await this.lane().runRound(this.signal);
    const [payment = ""] = this.chain.arrived;
    await cancelWithdrawal(this.database, wanted.id, "the client changed its mind");
    await this.work(4);
    await this.watch();
    return { wanted, payment };
  }

  /** How often and how much the wallet paid to an address, by the chain. */
  paidAtoken(to: Address): bigint {
    return this.chain.balances.get(to) ?? 0n;
  }

  /** Hashes of what the wallet signed and the chain holds, in order. */
  ownHashes(): Hash32[] {
    return this.chain.blocks.flatMap(({ transactions }) =>
      transactions.flatMap(({ hash, signed }) => (signed?.from === WALLET ? [hash] : [])),
    );
  }

  async close(): Promise<void> {
    for (const database of this.#opened) await database.close();
    // A copy holds rights of the roles of its source, which cannot be dropped before it.
    for (const drop of this.#drops.toReversed()) await drop();
    await this.chain.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** A destination nobody else uses. */
export function destination(number: number): Address {
  return parseAddress(testAddress(0xd000 + number));
}
