/**
 * Which transfers of a run of blocks are kept while they are read. A block may log some ninety thousand,
 * and a run has many blocks: what names none of our addresses is let go of at once.
 */
import type { Address } from "../../chain/address.js";
import { AddressPrefixes } from "../../chain/address-prefixes.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { TransferLog } from "../../rpc-client/tokens/transfer-logs.js";
import type { Watched } from "../deposit-match.js";

/** Receivers of a run that are remembered one by one: some tens of MB; of more, how they begin. */
const MAX_RECEIVERS = 200_000;

/**
 * Of one block, transfers to our addresses by contracts that nobody listed, at most: of each contract,
 * so that none hides what another one sent, and of all. They cost whoever logs them next to nothing,
 * and each is a row for ever.
 */
const MAX_OF_STRANGER = 1_000;
const MAX_OF_STRANGERS = 4_000;

/**
 * Of all blocks of a run together, some tens of MB; behind it each block still has a few. Who catches up
 * reads some two hundred blocks at once, and anybody may have filled each of them.
 */
const MAX_OF_RUN = 50_000;
const MAX_OF_STRANGERS_BEHIND = 100;

/**
 * Transfers of listed tokens at our addresses, of all blocks of a run, some tens of MB: each may be a
 * deposit, so that none is left out. A run with more is booked in parts.
 */
const MAX_LISTED_OF_RUN = 50_000;

/** A run has more transfers of listed tokens than are held at once: its first blocks come by themselves. */
export class RunTooLong extends Error {
  /** @param blocks of the run that are not too much, from its first on; at least one */
  constructor(readonly blocks: number) {
    super(`only the first ${blocks} blocks are booked together`);
  }
}

/** Accounts that transfers of a run name as their receivers; others may be taken for one. */
export interface Receivers {
  has(address: Address): boolean;
}

/** What is kept of one run, asked of each transfer in the order of the chain. */
export class WantedLogs implements Receivers {
  readonly #hashes: ReadonlyMap<Height, Hash32>;
  readonly #receivers = new Set<Address>();
  #moreReceivers: AddressPrefixes | undefined;
  /** Transfers of strangers that were kept, by block, and by block and contract. */
  readonly #kept = new Map<Height | string, number>();
  #keptOfRun = 0;
  #listed = 0;
  #leftOut = 0;

  constructor(
    private readonly watched: Pick<Watched, "assetOf"> & { has(address: Address): boolean },
    private readonly run: readonly { readonly height: Height; readonly hash: Hash32 }[],
    private readonly mostListed = MAX_LISTED_OF_RUN,
  ) {
    this.#hashes = new Map(run.map(({ height, hash }) => [height, hash]));
  }

  /**
   * How many to our addresses were let go of, because their blocks or all of the run have too many; of a
   * block whose transfers no answer holds nobody knows how many, and it counts as one.
   */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** Of a block only transfers of listed tokens were read. */
  leaveOut(): void {
    this.#leftOut += 1;
  }

  /** See `Receivers`. */
  has(address: Address): boolean {
    if (this.#receivers.has(address)) return true;
    return this.#moreReceivers?.mayHaveAddress(address) === true;
  }

  /** The block that was matched at a height; undefined for none of the run. */
  hashAt(height: Height): Hash32 | undefined {
    return this.#hashes.get(height);
  }

  /**
   * Whether a transfer is kept: it may concern us, or is of another block than was matched.
   * @throws RunTooLong behind a block with which the run has too many of listed tokens
   */
  keep({ height, blockHash, contract, standard, from, to, value }: TransferLog): boolean {
    if (to !== undefined) this.#remember(to);
    if (this.#hashes.get(height) !== blockHash) return true;
    if (standard === "erc20" && value === 0n) return false;
    const isToUs = to !== undefined && this.watched.has(to);
    if (this.watched.assetOf(contract) !== undefined) {
      const isOurs = isToUs || (from !== undefined && this.watched.has(from));
      if (isOurs) this.#countListed(height);
      return isOurs;
    }
    if (!isToUs) return false;
    const place = `${height} ${contract}`;
    const ofContract = this.#kept.get(place) ?? 0;
    const ofBlock = this.#kept.get(height) ?? 0;
    const most = this.#keptOfRun < MAX_OF_RUN ? MAX_OF_STRANGERS : MAX_OF_STRANGERS_BEHIND;
    const hasRoom = ofContract < MAX_OF_STRANGER && ofBlock < most;
    if (!hasRoom) {
      this.#leftOut += 1;
      return false;
    }
    this.#kept.set(place, ofContract + 1).set(height, ofBlock + 1);
    this.#keptOfRun += 1;
    return true;
  }

  #countListed(height: Height): void {
    this.#listed += 1;
    const blocks = height - (this.run[0]?.height ?? height);
    // A single block is as large as it is.
    if (this.#listed > this.mostListed && blocks > 0) throw new RunTooLong(blocks);
  }

  #remember(receiver: Address): void {
    if (this.#receivers.size < MAX_RECEIVERS) {
      this.#receivers.add(receiver);
      return;
    }
    this.#moreReceivers ??= new AddressPrefixes();
    this.#moreReceivers.add(receiver);
  }
}
