/**
 * Peers' transactions on their way to the pool, those of the EVM apart from Cosmos': whose are looked at
 * next, and who is not listened to for a while, because too much of it was useless or is not judged yet.
 */
import { LRUCache } from "lru-cache";
import { isCosmosBytes } from "../../../chain/cosmos/cosmos-transaction.js";
import { errorCode } from "../../../chain/errors.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { Turns } from "../../../runtime/turns/turns.js";
import { loadOf, roomOn, type Way } from "../../mempool/admission/ways.js";
import type { PoolLimits } from "../../mempool/pool-limits.js";
import type { NetworkPool, PoolErrorCode } from "../../mempool/pool-port.js";
import type { NodeId } from "../node-key.js";
import { firstOfBatch, MAX_BATCH_COUNT } from "../peers/peer-codec.js";
import { TokenBucket } from "../peers/traffic-meter.js";
import { countOwnFields } from "./packet-fields.js";
import { PeerRoom } from "./peer-room.js";

/** Refusals that say nothing about the sender: the pool has it, or has no room. */
const NOBODYS_FAULT: ReadonlySet<string> = new Set<PoolErrorCode>([
  "ALREADY_KNOWN",
  "POOL_FULL",
  "UNDERPRICED",
  "ACCOUNT_LIMIT",
  "NODE_HALTED",
]);

/**
 * Transactions of one peer that may turn out useless, mean and burst. Each costs a signature's
 * recovery. The burst is more than a whole greeting of a peer that was away, all of it mined since.
 */
const USELESS_PER_SECOND = 500;
const USELESS_BURST = 30_000;

/** Peers whose useless transactions are remembered, also while they are away. */
const MAX_JUDGED = 1_000;

/** Calls that the pool has at once: as many full batches as it decodes ahead of the recovery thread. */
const EVM_CALLS = 16;

/**
 * The same of Cosmos transactions. Some, so that one is decoded while signatures of another are verified;
 * few, because who comes next waits for them: a stranger's batch may take seconds.
 */
const COSMOS_CALLS = 4;

/** Stands for the answer to what was not even looked at. */
class Unseen extends Error {}

const overBudget = new Unseen("too many useless transactions");
const overRoom = new Unseen("too many transactions of this peer are not judged yet");
const unwanted = new Unseen("the peer was banned");

/** Whether an answer says only that nobody looked at the transaction. */
export function isUnseen(answer: unknown): boolean {
  return answer instanceof Unseen;
}

/** One kind of transactions: what of it is not judged yet, and the turns of those who sent it. */
interface Kind {
  readonly room: PeerRoom;
  readonly turns: Turns;
}

/** The way of peers' transactions to the pool. */
export class PeerSubmissions {
  private readonly budgets = new LRUCache<NodeId, TokenBucket>({ max: MAX_JUDGED });
  private readonly evm: Kind;
  private readonly cosmos: Kind;

  constructor(
    private readonly pool: Pick<NetworkPool, "limits" | "submit">,
    private readonly clock: Clock,
  ) {
    this.evm = kindOf("peer-evm", EVM_CALLS, pool.limits);
    this.cosmos = kindOf("peer-cosmos", COSMOS_CALLS, pool.limits);
  }

  /**
   * Whether a peer's batch is looked at now, by its first transaction: what nodes send by gossip is of
   * one kind. It holds no place: of one packet more may be heard than finds room behind it. What is no
   * batch needs no room to be judged.
   */
  isHeard(from: NodeId, batch: Uint8Array): boolean {
    const budget = this.budgets.get(from);
    if (budget !== undefined && budget.level() < MAX_BATCH_COUNT) return false;
    const count = countOwnFields(batch, MAX_BATCH_COUNT);
    if (count === undefined) return true;
    const { room } = isCosmosBytes(firstOfBatch(batch)) ? this.cosmos : this.evm;
    return room.fits(from, { count, sizeBytes: batch.length });
  }

  /** The pool's answer for each; one that `isUnseen` is true of where it was not looked at. */
  async submit(raws: readonly Uint8Array[], from: NodeId): Promise<readonly unknown[]> {
    const ofEvm = raws.filter((raw) => !isCosmosBytes(raw));
    const ofCosmos = raws.filter(isCosmosBytes);
    const [evm, cosmos] = await Promise.all([
      ofEvm.length > 0 ? this.submitAlike(this.evm, ofEvm, from) : [],
      ofCosmos.length > 0 ? this.submitAlike(this.cosmos, ofCosmos, from) : [],
    ]);
    const answers = { evm: evm.values(), cosmos: cosmos.values() };
    return raws.map((raw) => answers[isCosmosBytes(raw) ? "cosmos" : "evm"].next().value);
  }

  /** A peer was banned: what of it still waits is not looked at. */
  forget(from: NodeId): void {
    for (const { room } of [this.evm, this.cosmos]) room.forget(from, unwanted);
  }

  private async submitAlike(
    kind: Kind,
    raws: readonly Uint8Array[],
    from: NodeId,
  ): Promise<readonly unknown[]> {
    const budget = this.budgets.get(from) ?? this.newBudget(from);
    // Taken before the answers are here: batches must not overtake their judgement.
    if (!budget.take(raws.length)) {
      budget.give(raws.length);
      return raws.map(() => overBudget);
    }
    const answers = await this.inTurn(kind, raws, from);
    budget.give(answers.filter((answer) => !isUseless(answer)).length);
    return answers;
  }

  private async inTurn(
    { room, turns }: Kind,
    raws: readonly Uint8Array[],
    from: NodeId,
  ): Promise<readonly unknown[]> {
    const place = room.enter(from, loadOf(raws));
    if (place === undefined) return raws.map(() => overRoom);
    const { signal } = place;
    const work = () => {
      signal.throwIfAborted();
      place.begin();
      return this.pool.submit(raws, "peer");
    };
    try {
      return await turns.run(signal, work, from);
    } catch (error) {
      if (!signal.aborted) throw error;
      return raws.map(() => signal.reason);
    } finally {
      place.leave();
    }
  }

  private newBudget(from: NodeId): TokenBucket {
    const [perSecond, burst] = [USELESS_PER_SECOND, USELESS_BURST];
    const budget = new TokenBucket({ perSecond, burst, clock: this.clock });
    this.budgets.set(from, budget);
    return budget;
  }
}

/** A peers' way into the pool, where so many calls are under way at once. */
function kindOf(way: Way, maxRunning: number, limits: PoolLimits): Kind {
  const room = new PeerRoom(roomOn(way, limits), overRoom);
  // What waits is bounded by the room.
  const maxWaiting = Number.POSITIVE_INFINITY;
  return { room, turns: new Turns({ maxRunning, maxWaiting, full: () => overRoom }) };
}

/** What nobody looked at cost nothing. */
function isUseless(answer: unknown): boolean {
  if (isUnseen(answer)) return false;
  return answer instanceof Error && !NOBODYS_FAULT.has(errorCode(answer) ?? "");
}
