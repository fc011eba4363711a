/** What the consensus RPC shows, put together from the node's parts. */
import type { Consensus } from "../consensus/consensus.js";
import type { ChainView } from "../view/chain-view.js";
import type { EventBus } from "../view/event-bus.js";
import { FIRST_APP_VERSION } from "../settings/app-version.js";
import { encodeGenesis, type Genesis } from "../settings/genesis.js";
import { isCosmosBytes } from "../../chain/cosmos/cosmos-transaction.js";
import { dryCosmosCheck } from "../mempool/admission/cosmos-admission.js";
import { simulateCosmos } from "./simulation.js";
import { dryCheck, type PoolRules, type StateAtHead } from "../mempool/admission/admission.js";
import type { TransactionPool } from "../mempool/pool-port.js";
import type { CometChain, CometNetwork } from "../rpc/comet/ports.js";
import { SubmitLane } from "../rpc/submit-lane.js";
import type { StateReader } from "../store/state-reader.js";
import type { Database } from "../store/database.js";
import { EventStore } from "../store/blocks/event-store.js";

/** Parts of a running node. */
export interface CometChainParts {
  readonly genesis: Genesis;
  readonly view: ChainView;
  readonly consensus: Consensus;
  readonly pool: TransactionPool;
  readonly bus: EventBus;
  readonly database: Database;
  readonly rules: PoolRules;
  readonly state: StateAtHead;
  readonly network: CometNetwork;
  /** Accounts at the head. */
  readonly accounts: StateReader;
}

/** The chain as the consensus RPC reads it. */
export function createCometChain(parts: CometChainParts): CometChain {
  const { genesis, view, consensus, pool, bus, database, rules, state, network } = parts;
  const isKnown = (hash: Parameters<TransactionPool["get"]>[0]) => pool.get(hash) !== undefined;
  const lane = new SubmitLane(pool);
  return {
    view,
    consensus,
    pool,
    bus,
    events: new EventStore(database),
    genesis: {
      timeMs: genesis.genesisTimeMs,
      chainId: genesis.cosmosChainId,
      validators: genesis.validators.map(({ address, publicKey, power }) => ({
        address,
        publicKey: Buffer.from(publicKey, "base64"),
        power: BigInt(power),
        name: "",
      })),
      appHash: view.genesis().block.hash,
      appVersion: genesis.appVersion ?? FIRST_APP_VERSION,
      appState: encodeGenesis(genesis),
    },
    network,
    submit: (raw) => lane.add(raw),
    checkTransaction: async (raw) => {
      const ports = { rules, state, isKnown };
      if (!isCosmosBytes(raw)) return dryCheck(raw, ports);
      return dryCosmosCheck(raw, ports, (from) => pool.pendingNonce(from));
    },
    simulate: (tx) => simulateCosmos(tx, { ...parts, params: genesis.params }),
    addEvidence: (evidence) => consensus.addEvidence(evidence),
    consensusEvents: {
      onMoment: (listener) => consensus.onMoment(listener),
      onVote: (listener) => consensus.onVote(listener),
    },
  };
}
