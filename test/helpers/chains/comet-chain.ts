/**
 * A real chain (store, execution, pool) with the consensus RPC in front of it; consensus is a
 * fixture that signs every block with real ed25519 keys, so that heights come when a test says.
 */
import { minedTransactions } from "../../../node/blocks/block-pool.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { COSMOS_RULES } from "./cosmos-rules.js";
import { createHash } from "node:crypto";
import { type Address, parseAddress } from "../../../chain/address.js";
import { msToNs } from "../../../chain/consensus/block-id.js";
import {
  type Commit,
  COMMIT_FLAG,
  EMPTY_COMMIT,
  hashCommit,
} from "../../../chain/consensus/commit.js";
import {
  blockIdOf,
  type ConsensusBlock,
  encodeConsensusBlock,
  hashTransactions,
  splitIntoParts,
} from "../../../chain/consensus/consensus-block.js";
import { hashConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import {
  type DuplicateVoteEvidence,
  hashEvidence,
  hashEvidenceList,
} from "../../../chain/consensus/evidence.js";
import {
  executionResult,
  executionResultSteps,
} from "../../../chain/consensus/execution-result.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import {
  validatorAddress,
  ValidatorSet,
  type ValidatorUpdate,
} from "../../../chain/consensus/validator-set.js";
import { VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import { bytesToHash32, EMPTY_CODE_HASH, type Hash32, type Height } from "../../../chain/hex.js";
import type { Steps } from "../../../chain/steps/steps.js";
import { NETWORKS } from "../../../chain/networks.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import type { ConsensusParams } from "../../../chain/consensus/consensus-params.js";
import type {
  ConsensusMoment,
  DecidedBlock,
  Reception,
} from "../../../node/consensus/consensus-ports.js";
import { type SigningKey, signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { type CommittedBlock, EventBus } from "../../../node/view/event-bus.js";
import { encodeGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import { FlowMonitor } from "../../../node/p2p/peers/flow-monitor.js";
import { emptyProgress, voteList } from "./height-progress.js";
import { dryCheck } from "../../../node/mempool/admission/admission.js";
import { Mempool, type MempoolPorts } from "../../../node/mempool/mempool.js";
import { createModulesAt } from "../../../node/modules/reads/modules-at.js";
import { SubmitLane } from "../../../node/rpc/submit-lane.js";
import type { CometChain, CometConsensus } from "../../../node/rpc/comet/ports.js";
import { moduleAccounts } from "../../../node/compose/queries.js";
import { inflationPercent } from "../../../node/blocks/fees.js";
import { createSdkTransactions } from "../../../node/rpc/comet/sdk-transactions.js";
import { withEvmSimulation } from "../../../node/rpc/cosmos/evm-simulation.js";
import { createQueries } from "../../../node/rpc/cosmos/queries.js";
import type { QuerySources } from "../../../node/rpc/cosmos/sources.js";
import type { QueryRegistry } from "../../../node/rpc/cosmos/registry.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { startCometServer } from "../../../node/rpc/comet/server.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { EventStore } from "../../../node/store/blocks/event-store.js";
import { PoolStore } from "../../../node/store/pool-store.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import type { Vote } from "../../../chain/consensus/vote.js";
import { ExecutionChain, testGenesis } from "./execution-chain.js";

/** Four validators with fixed keys. */
export const VALIDATOR_KEYS: readonly SigningKey[] = [1, 2, 3, 4].map((number) =>
  signingKeyOf(createHash("sha256").update(`validator ${number}`).digest()),
);

/** Power of one of them at first. */
const firstPower = (index: number) => 10 + index;

const PARAMS: ConsensusParams = {
  blockMaxBytes: 16 * 1024 * 1024,
  blockMaxGas: 600_000_000n,
  evidenceMaxAgeBlocks: 100_000,
  evidenceMaxAgeNs: 172_800_000_000_000n,
  evidenceMaxBytes: 1_048_576,
};

const CONSENSUS_HASH = bytesToHash32(
  createHash("sha256")
    .update(
      new ProtoWriter().integer(1, PARAMS.blockMaxBytes).integer(2, PARAMS.blockMaxGas).finish(),
    )
    .digest(),
);

/** What one decided height adds beyond its transactions. */
export interface DecisionOptions {
  /** Indexes of the validators whose precommits are missing. */
  readonly absent?: readonly number[];
  readonly evidence?: readonly DuplicateVoteEvidence[];
  /** Changes that take effect at the height + 2. */
  readonly updates?: readonly ValidatorUpdate[];
}

/** Decides blocks as four validators would, with true hashes and signatures. */
export class FixtureConsensus implements CometConsensus {
  private readonly decided: DecidedBlock[] = [];
  private readonly heights = new Map<Hash32, Height>();
  private readonly sets: ValidatorSet[];
  private last: CommittedBlock;
  catchingUp = false;

  constructor(
    private readonly chainId: string,
    genesisBlock: CommittedBlock,
  ) {
    const first = ValidatorSet.genesis(
      VALIDATOR_KEYS.map(({ publicKey }, index) => ({
        publicKey,
        power: BigInt(firstPower(index)),
      })),
    );
    this.sets = [first, first.advance(1)];
    this.last = genesisBlock;
  }

  height = (): Height => this.decided.length;
  base = (): Height => Math.min(1, this.decided.length);
  load = (height: Height) => this.decided[height - 1];
  *loadSteps(height: Height): Steps<DecidedBlock | undefined> {
    yield;
    return this.load(height);
  }
  outline(height: Height) {
    const decided = this.decided[height - 1];
    if (decided === undefined) return undefined;
    const { header, evidence, lastCommit } = decided.block;
    const { commit } = decided;
    return { header, evidence, lastCommit, commit, blockId: need(commit.blockId) };
  }
  async *committedEvidence() {
    const all = this.decided.flatMap(({ block }) => block.evidence);
    for (const one of all) yield { hash: hashEvidence(one), voteHeight: one.voteA.height };
  }
  validators = (height: Height) => this.sets[height - 1];
  params = () => PARAMS;
  appVersion = () => 1;
  isCatchingUp = () => this.catchingUp;
  heightOfHash = (hash: Hash32) => this.heights.get(hash);

  /** Everybody prevoted nil in round 0, unsigned. */
  progress() {
    const height = this.height() + 1;
    const set = need(this.validators(height));
    const prevotes = set.validators.map(({ address }, validatorIndex) => {
      const content = { type: VOTE_TYPE.prevote, height, round: 0, blockId: undefined, timeNs: 0n };
      const signature = new Uint8Array(64);
      return { ...content, validatorAddress: address, validatorIndex, signature };
    });
    const precommits = voteList(set, []);
    const votes = [{ round: 0, prevotes, precommits }];
    return emptyProgress(height, set, { step: STEP.prevote, votes });
  }

  /** Puts an executed block into consensus and signs it. */
  decide(committed: CommittedBlock, options: DecisionOptions = {}): DecidedBlock {
    const { block } = committed;
    const height = block.header.height;
    const previous = this.decided.at(-1);
    const set = need(this.validators(height));
    const nextSet = need(this.validators(height + 1));
    const transactions = block.transactions.map(({ tx, from }) => encodeSdkTransaction(tx, from));
    const lastCommit = previous?.commit ?? EMPTY_COMMIT;
    const evidence = options.evidence ?? [];
    const parent = this.last;
    const results = parent.block.transactions.map(({ tx }, index) =>
      executionResult(tx, need(parent.receipts[index])),
    );
    const body: ConsensusBlock = {
      header: {
        blockVersion: 11,
        appVersion: 1,
        chainId: this.chainId,
        height,
        timeNs: msToNs(block.timeMs),
        lastBlockId: previous?.commit.blockId,
        lastCommitHash: hashCommit(lastCommit),
        dataHash: hashTransactions(transactions),
        validatorsHash: set.hash(),
        nextValidatorsHash: nextSet.hash(),
        consensusHash: CONSENSUS_HASH,
        appHash: parent.block.hash,
        lastResultsHash: allAtOnce(executionResultSteps(results)),
        evidenceHash: hashEvidenceList(evidence),
        proposerAddress: set.proposer.address,
      },
      transactions,
      evidence,
      lastCommit,
    };
    const decided = { block: body, commit: this.sign(body, set, options.absent ?? []) };
    this.decided.push(decided);
    this.heights.set(hashConsensusHeader(body.header), height);
    this.sets.push(nextSet.update(options.updates ?? []).advance(1));
    this.last = committed;
    return decided;
  }

  private sign(block: ConsensusBlock, set: ValidatorSet, absent: readonly number[]): Commit {
    const { height, timeNs } = block.header;
    const blockId = blockIdOf(block, splitIntoParts(encodeConsensusBlock(block)));
    const signatures = set.validators.map(({ address, publicKey }, index) => {
      if (absent.includes(index)) return { flag: COMMIT_FLAG.absent };
      const vote = { type: VOTE_TYPE.precommit, height, round: 0, blockId };
      const signedNs = timeNs + BigInt(index + 1) * 1_000_123n;
      const key = need(
        VALIDATOR_KEYS.find((one) => Buffer.compare(one.publicKey, publicKey) === 0),
      );
      const signature = key.sign(voteSignBytes(this.chainId, { ...vote, timeNs: signedNs }));
      const flag = COMMIT_FLAG.commit;
      return { flag, validatorAddress: address, timeNs: signedNs, signature };
    });
    return { height, round: 0, blockId, signatures };
  }
}

async function unserved(): Promise<never> {
  throw new Error("the fixture executes no calls");
}

function need<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("the fixture lacks a value");
  return value;
}

/** The chain, its pool and its consensus RPC; `close` stops everything and deletes the chain. */
export class CometTestChain {
  readonly received: DuplicateVoteEvidence[] = [];
  readonly tellMoment = new Set<(moment: ConsensusMoment) => void>();
  readonly tellVote = new Set<(vote: Vote) => void>();
  reception: Reception = "new";
  private readonly lane: SubmitLane;
  private served: CometChain | undefined;
  private registry: QueryRegistry | undefined;

  private constructor(
    readonly chain: ExecutionChain,
    readonly consensus: FixtureConsensus,
    readonly bus: EventBus,
    readonly pool: Mempool,
    private server: RpcServer | undefined,
  ) {
    this.lane = new SubmitLane(pool);
  }

  static async open(faucet: string): Promise<CometTestChain> {
    const genesis = testGenesis(faucet);
    const chain = await ExecutionChain.open(genesis);
    const consensus = new FixtureConsensus(genesis.cosmosChainId, chain.view.genesis());
    const bus = new EventBus((error) => {
      throw error;
    });
    const ports = poolPorts(chain, bus);
    const pool = await Mempool.open(ports);
    const test = new CometTestChain(chain, consensus, bus, pool, undefined);
    test.server = await startCometServer({
      view: chain.view,
      network: NETWORKS[genesis.network],
      isCatchingUp: () => false,
      moniker: "fixture",
      nodeId: "ab".repeat(20),
      p2pListenAddress: "tcp://127.0.0.1:26656",
      rpcListenAddress: "tcp://127.0.0.1:26657",
      version: "0.0.0-test",
      validator: { publicKey: need(VALIDATOR_KEYS[0]).publicKey, votingPower: 0n },
      listen: { host: "127.0.0.1", port: 0 },
      log: createLogger({ component: "test", level: "silent" }),
      allowedOrigins: ["https://wallet.example"],
      chain: (test.served = test.portsOf(genesis, ports)),
      queries: (test.registry = test.queriesOf(genesis, test.served)),
    });
    return test;
  }

  /** What the server reads. */
  get ports(): CometChain {
    return need(this.served);
  }

  /** What `abci_query` answers. */
  get queries(): QueryRegistry {
    return need(this.registry);
  }

  /** The registry of a node; calls are executed by nobody. */
  private queriesOf(genesis: Genesis, chain: CometChain): QueryRegistry {
    const noCalls = { call: unserved, estimateGas: unserved, createAccessList: unserved };
    const noTraces = { traceBlock: unserved, traceCall: unserved, simulate: unserved };
    const calls = { ...noCalls, ...noTraces };
    const sources: QuerySources = {
      types: loadDescriptors(),
      chain,
      transactions: withEvmSimulation(createSdkTransactions(chain), chain, calls),
      calls,
      evmChainId: genesis.evmChainId,
      node: {
        moniker: "fixture",
        nodeId: "ab".repeat(20),
        p2pListenAddress: "tcp://127.0.0.1:26656",
        rpcListenAddress: "tcp://127.0.0.1:26657",
        version: "0.0.0-test",
        minimumGasPrices: "0.025atoken",
        pruningKeepRecent: "0",
        pruningInterval: "0",
        haltHeight: 0,
      },
      modules:
        genesis.modules && createModulesAt((height) => this.chain.stores.state.readerAt(height)),
      moduleAccounts: moduleAccounts(genesis),
      burnAddress: genesis.params.burnAddress,
      inflationPercent,
      vesting: { account: async () => undefined, lockedSupplyAtoken: () => 0n },
    };
    return createQueries(sources, 20_000);
  }

  private portsOf(genesis: Genesis, pool: MempoolPorts): CometChain {
    const { view, stores } = this.chain;
    const own =
      <Listener>(set: Set<Listener>) =>
      (listener: Listener) => {
        set.add(listener);
        return () => {
          set.delete(listener);
        };
      };
    return {
      view,
      consensus: this.consensus,
      simulate: () => {
        throw new Error("nothing is simulated here");
      },
      pool: this.pool,
      bus: this.bus,
      events: new EventStore(stores.database),
      genesis: {
        timeMs: genesis.genesisTimeMs,
        chainId: genesis.cosmosChainId,
        validators: need(this.consensus.validators(1)).validators.map((one) => ({
          ...one,
          name: "",
        })),
        appHash: view.genesis().block.hash,
        appVersion: genesis.appVersion ?? 1,
        appState: encodeGenesis(genesis),
      },
      network: {
        listeners: ["Listener(@127.0.0.1:26656)"],
        peers: () => [
          {
            nodeId: "cd".repeat(20),
            listenAddress: "tcp://127.0.0.1:26756",
            moniker: "peer",
            version: "0.38.17",
            rpcAddress: "tcp://127.0.0.1:26757",
            isOutbound: true,
            remoteIp: "127.0.0.1",
            connectedMs: 5_000,
            network: genesis.cosmosChainId,
            receivedBytes: 0,
            sentBytes: 0,
            receiving: new FlowMonitor(systemClock).status(),
            sending: new FlowMonitor(systemClock).status(),
            unsentBytes: 0,
            maxUnsentBytes: 1_024,
            round: { status: undefined, sinceMs: 0, voteCount: 0, partCount: 0 },
          },
        ],
      },
      submit: (raw) => this.lane.add(raw),
      checkTransaction: async (raw) =>
        dryCheck(raw, { ...pool, isKnown: (hash) => this.pool.get(hash) !== undefined }),
      addEvidence: async (evidence) => {
        this.received.push(evidence);
        return this.reception;
      },
      consensusEvents: { onMoment: own(this.tellMoment), onVote: own(this.tellVote) },
    };
  }

  get url(): string {
    return `http://127.0.0.1:${need(this.server).address.port}`;
  }

  /** Mines these transactions as one block, decides it, and tells everybody. */
  async mine(raws: readonly string[] = [], options: DecisionOptions = {}) {
    const mined = await this.chain.mine(raws);
    const { committed } = mined;
    const decided = this.consensus.decide(committed, options);
    allAtOnce(
      this.pool.onBlockCommitted({
        transactions: allAtOnce(minedTransactions(committed.block.transactions)),
        touched: mined.changes.accounts.keys(),
      }),
    );
    this.bus.emit("block", committed);
    return { committed, decided };
  }

  /** Genesis as a stranger has it: with the validators that sign. */
  get genesis(): Genesis {
    const validators = VALIDATOR_KEYS.map(({ publicKey }, index) => ({
      address: validatorAddress(publicKey),
      publicKey: Buffer.from(publicKey).toString("base64"),
      power: firstPower(index),
    }));
    return { ...this.chain.genesis, validators };
  }

  /** Mines a block for each entry; from `newSetHeight` on the first validator alone decides, and signs. */
  async mineToNewSet(blocks: readonly (readonly string[])[], newSetHeight: number): Promise<void> {
    const updates = [{ publicKey: need(VALIDATOR_KEYS[0]).publicKey, power: 1_000n }];
    for (const [index, raws] of blocks.entries()) {
      const height = index + 1;
      await this.mine(raws, {
        ...(height === newSetHeight - 2 && { updates }),
        ...(height >= newSetHeight && { absent: [1, 2, 3] }),
      });
    }
  }

  /** Mines what is executable in the pool. */
  minePool() {
    const pending = [...this.pool.senders()].flatMap(([, content]) => content.pending);
    return this.mine(pending.map(({ tx }) => `0x${Buffer.from(tx.raw).toString("hex")}`));
  }

  async close(): Promise<void> {
    await this.server?.stop();
    await this.pool.close();
    await this.chain.close();
  }
}

function poolPorts({ stores, view, genesis }: ExecutionChain, bus: EventBus): MempoolPorts {
  const account = (address: Address) => stores.state.account(parseAddress(address));
  return {
    state: {
      nonce: (address) => account(address)?.nonce ?? 0n,
      balanceAtoken: (address) => account(address)?.balanceAtoken ?? 0n,
      lockedAtoken: () => 0n,
      hasCode: (address) => (account(address)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH,
    },
    journal: new PoolStore(stores.database, (hash) => view.locate(hash) !== undefined),
    bus,
    clock: systemClock,
    rules: {
      chainId: genesis.evmChainId,
      ...COSMOS_RULES,
      minGasPriceAtoken: 1n,
      maxTransactionGas: genesis.params.maxTransactionGas,
    },
    locate: (hash) => view.locate(hash),
    oldestHeight: () => 1,
    haltReason: () => undefined,
    onJournalFault(error) {
      throw error;
    },
  };
}
