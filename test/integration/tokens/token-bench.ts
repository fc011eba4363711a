/**
 * An exchange on a real chain in one process: node, sidecar, watcher and lane over one ledger, and
 * contracts that a test makes its blocks with.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCreateAddress, HDNodeWallet, Interface, keccak256, Mnemonic, Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { ERC20_TOPICS } from "../../../chain/evm/erc20.js";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import type { TokenEntry } from "../../../chain/token-list.js";
import { createReconcileChain } from "../../../rpc-client/reconcile-chain.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import type { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { Watcher } from "../../../deposit-watcher/watcher.js";
import { createWatcherMetrics } from "../../../deposit-watcher/watcher-metrics.js";
import { acceptCode } from "../../../ledger/assets/token-state.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { explainBreaks } from "../../../ledger/books/break-causes.js";
import { reconcile } from "../../../ledger/books/reconcile.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { openIncident } from "../../../ledger/incidents.js";
import { planRewind, type RewindPlan } from "../../../ledger/recovery/older-chain.js";
import { applyRewind } from "../../../ledger/recovery/rewind.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import {
  createDataApiClient,
  type DataApiClient,
} from "../../../rpc-client/data-api/data-api-client.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import {
  type Decision,
  type DecisionChain,
  propose,
} from "../../../ledger/decisions/decision-log.js";
import type { StoredTerms } from "../../../ledger/decisions/decision.js";
import { createEvmClient, type EvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import {
  openTestLedger,
  registerTestWallets,
  silentLog,
  type TestLedger,
} from "../../helpers/services/ledger.js";
import { derivation, openTokenBook, registerAddress } from "../../helpers/services/watcher.js";
import { type CompiledContract, compileFixture } from "../../helpers/contracts/solidity.js";
import { until } from "../../helpers/until.js";
import { type Online, onlineServer } from "../../unit/sidecar/servers.js";
import { WALLET, WALLET_KEY } from "../../helpers/exchange/house.js";

/** Pays for everything and owns every contract. */
export const ISSUER = new Wallet(`0x${"11".repeat(32)}`);

/** The hot wallet's key in an outsider's hands. */
export const THIEF = new Wallet(`0x${Buffer.from(WALLET_KEY).toString("hex")}`);

/** Contracts in the order of their creation by the issuer; the proxy's is the last. */
const CONTRACTS = [
  "PlainToken",
  "FeeToken",
  "MoodyToken",
  "Forger",
  "StrangeToken",
  "SecondPlain",
  "Payer",
  "UpgradableProxy",
] as const;

/** One of the deployed contracts. */
export type ContractName = (typeof CONTRACTS)[number];

/** Address of a contract, known before it exists. */
export function contractAt(name: ContractName): Address {
  return createdAt(CONTRACTS.indexOf(name));
}

/** Address of what the issuer creates with a nonce; the first behind those of `deploy` is 8. */
export function createdAt(nonce: number): Address {
  return parseAddress(getCreateAddress({ from: ISSUER.address, nonce }).toLowerCase());
}

/**
 * Creation code of a contract that answers 0 to every call with data, and to one without logs so many
 * times that an account gave all that there can be.
 */
export function claimant(from: Address, times: number): string {
  const word = (account: string) => `7f${"00".repeat(12)}${account.slice(2)}`;
  const sides = word(`0x${"77".repeat(20)}`) + word(from);
  const log = `5f195f52${sides}7f${ERC20_TOPICS.transfer.slice(2)}60205fa3`;
  const runtime = `361560095760205ff35b${log.repeat(times)}00`;
  return `0x61${(runtime.length / 2).toString(16).padStart(4, "0")}80600a5f395ff3${runtime}`;
}

/** Everything that is listed. */
export const TOKENS: readonly TokenEntry[] = [
  { symbol: "PLAIN", contractAddress: contractAt("PlainToken"), decimals: 6 },
  { symbol: "FEE", contractAddress: contractAt("FeeToken"), decimals: 18 },
  { symbol: "MOODY", contractAddress: contractAt("MoodyToken"), decimals: 0 },
  { symbol: "PROXY", contractAddress: contractAt("UpgradableProxy"), decimals: 18 },
];

const ABI = new Interface([
  "function mint(address,uint256)",
  "function transfer(address,uint256)",
  "function transferMany(address[],uint256[])",
  "function transferAndUndo(address,uint256)",
  "function setMood(uint256)",
  "function seize(address,address,uint256)",
  "function upgradeTo(address)",
  "function fungible(address,address,uint256)",
  "function nft(address,address,uint256)",
  "function unindexed(address,address,uint256)",
  "function single(address,address,uint256,uint256)",
  "function batch(address,address,uint256[])",
  "function forward(address[],uint256,uint256) payable",
  "function payThenRevertInside(address,uint256) payable",
  "function fail(address) payable",
  "function destroyTo(address) payable",
  "function create(bytes32,address) payable",
]);

/** A transaction to sign. */
export interface Message {
  readonly from?: Wallet | HDNodeWallet;
  readonly to?: string;
  readonly data?: string;
  readonly value?: bigint;
  /** 3,000,000 without it. */
  readonly gasLimit?: bigint;
}

/** A call of a contract. */
export function callOf(
  name: ContractName,
  method: string,
  args: readonly unknown[],
  value = 0n,
): Message {
  return { to: contractAt(name), data: ABI.encodeFunctionData(method, args), value };
}

/** Key of the deposit address of an index. */
export function depositKey(index: number): HDNodeWallet {
  const phrase = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`);
  return HDNodeWallet.fromMnemonic(phrase, `m/44'/60'/0'/0/${index}`);
}

/** The exchange; `close` ends all of it. */
export class TokenBench {
  readonly #nonces = new Map<string, number>();
  /** Of each block behind genesis: its transactions, and how many each sender had then sent. */
  readonly #blocks: { raws: readonly string[]; nonces: ReadonlyMap<string, number> }[] = [];
  #stop = new AbortController();
  #loops: Promise<void>[] = [];
  readonly faults: unknown[] = [];

  private constructor(
    readonly chain: ServedChain,
    readonly online: Online,
    readonly ledger: TestLedger,
    readonly rpc: JsonRpcClient,
    readonly node: EvmClient,
    readonly source: DataApiClient,
    readonly home: string,
  ) {}

  /**
   * A chain without blocks but genesis, its sidecar, and an empty ledger.
   * @param former whose ledger and home it has instead
   * @param listed tokens that its sidecar knows
   * @param genesis where its chain is to have more than an issuer
   */
  static async open(
    former?: Pick<TokenBench, "ledger" | "home">,
    listed: readonly TokenEntry[] = TOKENS,
    genesis: Genesis = testGenesis(ISSUER.address.toLowerCase()),
  ): Promise<TokenBench> {
    const chain = await ServedChain.open(genesis);
    const online = onlineServer(chain.url, { registry: new TokenRegistry(listed) });
    await online.server.start();
    const genesisHash = chain.chain.view.genesis().block.hash;
    const ledger =
      former?.ledger ?? (await openTestLedger({ chainId: 6940n, genesisHash }, "watcher"));
    await registerTestWallets(ledger.database, WALLET);
    const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 30_000 });
    const source = createDataApiClient({
      url: `http://127.0.0.1:${online.server.port}`,
      network: { blockchain: "token", network: "testnet" },
      timeoutMs: 30_000,
    });
    const home = former?.home ?? mkdtempSync(join(tmpdir(), "causeway-tokens-"));
    return new TokenBench(chain, online, ledger, rpc, createEvmClient(rpc), source, home);
  }

  get database(): SqlDatabase {
    return this.ledger.database;
  }

  /** The chain comes back without the blocks above one. @returns it, over the same ledger */
  async without(height: number): Promise<TokenBench> {
    await this.#end();
    const back = await TokenBench.open(this, TOKENS, this.chain.chain.genesis);
    for (const { raws, nonces } of this.#blocks.slice(0, height)) {
      await back.mine([], raws);
      for (const [sender, nonce] of nonces) back.#nonces.set(sender, nonce);
    }
    return back;
  }

  /**
   * The watcher goes back, as `causeway recover --apply` lets it; with `isDown` it is started behind that.
   * @returns what was to be done
   */
  async recover({ isDown = false } = {}): Promise<RewindPlan> {
    const { node, ledger } = this;
    const { signal } = new AbortController();
    await this.watch();
    await until(async () => (await openIncident(ledger.owner)) !== undefined, {
      timeoutMs: 30_000,
      what: "the watcher halts",
    });
    const plan = await planRewind(ledger.owner, {
      headHeight: () => node.blockNumber({ signal }),
      blockHash: async (height) => (await node.getBlockHeader(height, { signal }))?.hash,
      areMined: async (hashes) => {
        const receipts = await node.getTransactionReceipts(hashes, { signal });
        return receipts.map((receipt) => receipt !== undefined);
      },
      nextNonce: (wallet) => node.getTransactionCount(wallet, "latest", { signal }),
      coinsAt: (address, height) => node.getBalance(address, height, { signal }),
      unitsAt: (token, accounts, at) =>
        node.tokenBalances(
          accounts.map((account) => ({ token, account, at })),
          { signal },
        ),
    });
    if (plan === undefined) throw new Error("nothing is missing");
    if (isDown) await this.stopWatching();
    await applyRewind(ledger.owner, plan, "ann");
    if (isDown) await this.watch();
    await this.caughtUp();
    return plan;
  }

  /** Starts the watcher anew, which stores the tokens. */
  async watch(listed: readonly TokenEntry[] = TOKENS, log = silentLog): Promise<TokenBook> {
    await this.stopWatching();
    const { node, source, database } = this;
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const parts = { database, node, log };
    const tokens = await openTokenBook(parts, listed, { signal });
    const guard = await LedgerGuard.open({ database, home: this.home, reporter: "test" });
    const watcher = new Watcher({
      database,
      guard,
      node,
      source,
      book: new AddressBook(tokens.assets()),
      tokens,
      identity: { chainId: 6940n, genesisHash: this.chain.chain.view.genesis().block.hash },
      log,
      metrics: createWatcherMetrics(createMetrics({ processMetrics: false })),
      options: {
        pollIntervalMs: 100,
        readsInFlight: 8,
        staleHeadsAllowed: 3,
        leaseMs: 60_000,
        owner: "bench",
      },
    });
    const note = (error: unknown) => void this.faults.push(error);
    this.#loops = [watcher.run(signal).catch(note), watcher.runBackfills(signal).catch(note)];
    return tokens;
  }

  /** Registers an address as the API does. */
  /** Accepts the code that a token's contract runs now, as the command does it. */
  async accept(asset: string, contract: Address): Promise<void> {
    const { signal } = new AbortController();
    const height = await this.node.blockNumber({ signal });
    const [code] = await this.node.tokenCodes([{ contract, at: height }], { signal });
    if (code === undefined) throw new Error("no code");
    await acceptCode(this.ledger.owner, { ...code, asset, height, by: "ann" });
  }

  /** A sweep of units of a token into the hot wallet, as one whose bytes are stored. @returns its hash */
  async storeSweep(
    raw: string,
    sweep: { readonly address: Address; readonly asset: string; readonly units: bigint },
  ): Promise<Hash32> {
    const { owner } = this.ledger;
    const hash = parseHash32(keccak256(raw));
    await owner.query(
      `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce, gas_price_atoken,
         state) VALUES ($1, $2, $3, $4, 300000, 0, 1, 'ready')`,
      [sweep.address, sweep.asset, WALLET, sweep.units.toString()],
    );
    await owner.query(
      `INSERT INTO sweep_attempt (sweep_id, n, raw, hash, gas_price_atoken, wallet)
       SELECT id, 0, $1, $2, 1, wallet FROM sweep`,
      [raw, hash],
    );
    await owner.query(`UPDATE sweep SET state = 'signed'`);
    return hash;
  }

  async register(customer: string): Promise<Address> {
    const registered = await registerAddress(this.database, parseCustomerId(customer), {
      deriveAddress: (index) => derivation.addressAt(index),
      issuedBelow: 0,
    });
    return registered.address;
  }

  /** Creates all contracts, each by the issuer's nonce that its address says. */
  async deploy(): Promise<void> {
    const compiled = { ...compileFixture("DepositTokens.sol"), ...compileFixture("Payments.sol") };
    const codeOf = (name: string): string => compiled[name]?.bytecode ?? "0x";
    const sources: Readonly<Record<string, string>> = {
      StrangeToken: codeOf("PlainToken"),
      SecondPlain: codeOf("FeeToken"),
      Payer: withAddress(compiled["Payer"], `0x${"0".repeat(40)}`),
      UpgradableProxy: withAddress(compiled["UpgradableProxy"], contractAt("PlainToken")),
    };
    await this.mine(CONTRACTS.map((name) => ({ data: sources[name] ?? codeOf(name) })));
  }

  /** A person's decision, carried out at once, over a connection that may take it. */
  decide(database: SqlDatabase, terms: StoredTerms, reason: string): Promise<Decision> {
    const wanted = { terms, reason, operator: "test", needsSecond: false };
    return propose(database, wanted, this.decisionChain);
  }

  /** The chain as decisions ask it. */
  get decisionChain(): DecisionChain {
    const { signal } = new AbortController();
    const receiptOf = (hash: Hash32) => this.node.getTransactionReceipt(hash, { signal });
    return {
      hasDone: async ({ hash }) => (await receiptOf(hash))?.status === 1,
      blockOf: async (hash) => (await receiptOf(hash))?.blockHash,
      paidBy: async () => undefined,
    };
  }

  /** Mines one block with these transactions, and returns their hashes. */
  async mine(
    messages: readonly Message[],
    raws: readonly string[] = [],
    cosmosRaws: readonly Uint8Array[] = [],
  ): Promise<Hash32[]> {
    const signed: string[] = [...raws];
    for (const { from = ISSUER, ...message } of messages) {
      const nonce = this.#nonces.get(from.address) ?? 0;
      this.#nonces.set(from.address, nonce + 1);
      const common = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 3_000_000n };
      signed.push(await from.signTransaction({ ...common, nonce, ...message }));
    }
    const { committed } = await this.chain.mine(signed, cosmosRaws);
    this.#blocks.push({ raws: signed, nonces: new Map(this.#nonces) });
    await this.online.indexed(committed.block.header.height);
    return committed.block.transactions.map(({ tx }) => tx.hash);
  }

  /** The hot wallet's transactions are made by the lane, too. */
  skipNonce(address: string, count: number): void {
    this.#nonces.set(address, (this.#nonces.get(address) ?? 0) + count);
  }

  /** Waits until the watcher stands at the head. */
  async caughtUp(): Promise<void> {
    const { height } = this.chain.chain.view.head();
    await until(
      async () => {
        if (this.faults.length > 0) throw this.faults[0];
        return (await readCursor(this.database)).height >= height;
      },
      { timeoutMs: 30_000, what: `the cursor reaches ${height}` },
    );
  }

  /** Ledger against chain, as the command does it. */
  async reconcile() {
    const chain = createReconcileChain(this.node, this.#stop.signal);
    const report = await reconcile(this.ledger.owner, chain);
    return (await explainBreaks(this.ledger.owner, chain, report)).report;
  }

  async stopWatching(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
  }

  async close(): Promise<void> {
    await this.#end();
    await this.ledger.drop();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Everything but what outlives a chain. */
  async #end(): Promise<void> {
    await this.stopWatching();
    this.rpc.close();
    this.source.close();
    await this.online.server.stop();
    await this.online.rpc.close();
    await this.chain.close();
  }
}

/** Creation code of a contract whose constructor takes one address. */
function withAddress(contract: CompiledContract | undefined, address: string): string {
  return `${contract?.bytecode ?? "0x"}${"00".repeat(12)}${address.slice(2)}`;
}
