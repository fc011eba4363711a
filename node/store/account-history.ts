/**
 * Old versions of accounts, read a stretch at a time: who asks for an account at one height (a
 * watcher that holds operations against balances) asks for it again a few blocks on. The past
 * never changes, so what was read stays true for ever.
 */
import { LRUCache } from "lru-cache";
import { type Address, addressToBytes } from "../../chain/address.js";
import { heightBytes, readHeight } from "../../chain/encoding/height-bytes.js";
import type { Height } from "../../chain/hex.js";
import { type Database, storeKey } from "./database.js";

/** Blocks above the wanted one that are read with it; at most one version each. */
const READ_AHEAD_BLOCKS = 64;

/** Stretches in memory, each with 65 versions of about 100 bytes at most: 14 MB in all. */
const MAX_STRETCHES = 2_048;

/** Where the height lies in a key: behind the space's byte and the address. */
const HEIGHT_OFFSET = 21;

/** One account between two heights, both included. */
interface Stretch {
  readonly from: Height;
  readonly to: Height;
  /** Every version that is valid in between, newest first. */
  readonly versions: Promise<readonly Version[]>;
}

/** The account from a height on; empty bytes where there was none. */
interface Version {
  readonly height: Height;
  readonly bytes: Buffer;
}

/** Versions of accounts below the head. */
export class AccountHistory {
  private readonly stretches = new LRUCache<Address, Stretch>({ max: MAX_STRETCHES });

  constructor(private readonly database: Database) {}

  /** The version after a block, at most the head; undefined where there was none yet. */
  async versionAt(
    address: Address,
    height: Height,
    headHeight: Height,
  ): Promise<Buffer | undefined> {
    const at = Math.min(height, headHeight);
    const known = this.stretches.get(address);
    const fits = known !== undefined && known.from <= at && at <= known.to;
    const stretch = fits ? known : this.read(address, at, headHeight);
    const versions = await stretch.versions;
    return versions.find((version) => version.height <= at)?.bytes;
  }

  private read(address: Address, height: Height, headHeight: Height): Stretch {
    // What lies above the head is not published yet.
    const to = Math.min(height + READ_AHEAD_BLOCKS, headHeight);
    const stretch = { from: height, to, versions: this.load(address, to, to - height + 1) };
    this.stretches.set(address, stretch);
    stretch.versions.catch(() => {
      if (this.stretches.peek(address) === stretch) this.stretches.delete(address);
    });
    return stretch;
  }

  /** As many versions as there are heights reach back to the one valid at the lowest of them. */
  private async load(address: Address, to: Height, limit: number): Promise<Version[]> {
    const prefix = addressToBytes(address);
    const range = {
      from: storeKey("accountHistory", prefix, heightBytes(0)),
      to: storeKey("accountHistory", prefix, heightBytes(to)),
      reverse: true,
      limit,
    };
    const entries = await this.database.few(range);
    return entries.map(([key, bytes]) => ({ height: readHeight(key, HEIGHT_OFFSET), bytes }));
  }
}
