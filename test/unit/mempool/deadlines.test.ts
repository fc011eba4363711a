/** What a block costs the pool follows what expires with it, not what says until when it is good. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { timeoutFault, timestampFault } from "../../../chain/cosmos/ante.js";
import { deadlineOf } from "../../../chain/cosmos/timeout-time.js";
import { bytesToHash32, type Hash32 } from "../../../chain/hex.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { sha256 } from "../../../chain/hashes.js";
import { Deadlines, type TimedEntry } from "../../../node/mempool/order/deadlines.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { createRandom } from "../../helpers/random.js";
import { createFixture } from "./support.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_127);
console.log(`deadlines: seed ${SEED} (CAUSEWAY_TEST_SEED)`);

const MNEMONIC = "test test test test test test test test test test test junk";
const owner = parseAddress(Wallet.fromPhrase(MNEMONIC).address);

/** Transactions of one account, each void after a height. */
function signedUntil(heights: readonly number[]): Uint8Array[] {
  const value = {
    fromAddress: toBech32(owner),
    toAddress: toBech32(parseAddress(`0x${"77".repeat(20)}`)),
    amount: [{ denom: "atoken", amount: "7" }],
  };
  const asked = heights.map((timeoutHeight, sequence) => ({
    messages: [{ typeUrl: "/cosmos.bank.v1beta1.MsgSend", value }],
    chainId: "chain_6940-1",
    gas: 70_000,
    fee: [{ denom: "atoken", amount: "7000000" }],
    sequence,
    timeoutHeight,
  }));
  return signWithCosmJs(MNEMONIC, asked).map(({ raw }) => raw);
}

describe("a block", () => {
  it("makes the pool look at those that expire, however many others have a timeout", async () => {
    const head = { height: 3, asked: 0 };
    const headHeight = () => {
      head.asked += 1;
      return head.height;
    };
    const { pool, mine, state } = await createFixture({ rules: { headHeight } });
    state.nonces.set(owner, 0n);
    const raws = signedUntil([...Array.from({ length: 50 }, () => 1_000_000), 5, 4]);
    const hashes = raws.map((raw) => bytesToHash32(sha256(raw)));
    expect(await pool.submit(raws)).toEqual(hashes);

    head.asked = 0;
    mine([]);
    expect(head.asked).toBe(1);
    head.height = 5;
    mine([]);
    // Each of the two is found and judged, and then nothing more is.
    expect(head.asked).toBe(6);
    const late = hashes.map((hash) => pool.status(hash).status === "dropped");
    expect(late).toEqual([...Array.from({ length: 50 }, () => false), true, true]);
  });
});

/** An entry that says how often its deadline was read. */
class CountedEntry implements TimedEntry {
  readonly tx: { readonly hash: Hash32 };
  reads = 0;

  constructor(
    n: number,
    readonly height: number,
    readonly timeMs: number,
  ) {
    this.tx = { hash: `0x${n.toString(16).padStart(64, "0")}` as Hash32 };
  }

  get deadline() {
    this.reads += 1;
    return { height: this.height, timeMs: this.timeMs };
  }

  isVoid(headHeight: number, headTimeMs: number): boolean {
    return this.height <= headHeight || this.timeMs < headTimeMs;
  }
}

describe("deadlines", () => {
  it("name what is void, once it is, among any that come and go", () => {
    const random = createRandom(SEED);
    const deadlines = new Deadlines();
    const held = new Map<Hash32, CountedEntry>();
    const some = (now: number) => (random.integer(4) === 0 ? Infinity : now + random.integer(300));
    for (let height = 1; height <= 300; height++) {
      for (let n = random.integer(20); n > 0; n--) {
        const entry = new CountedEntry(height * 100 + n, some(height), some(height));
        held.set(entry.tx.hash, entry);
        deadlines.add(entry);
        deadlines.add(entry);
      }
      for (const entry of held.values()) {
        if (random.integer(40) > 0) continue;
        held.delete(entry.tx.hash);
        deadlines.delete(entry);
      }
      const due = [...held.values()].filter((entry) => entry.isVoid(height, height));
      const named = new Set<Hash32>();
      for (;;) {
        const hash = deadlines.takeVoid(height, height);
        if (hash === undefined) break;
        const entry = held.get(hash);
        if (entry === undefined) continue;
        named.add(hash);
        held.delete(hash);
        deadlines.delete(entry);
      }
      expect(named).toEqual(new Set(due.map(({ tx }) => tx.hash)));
    }
  });

  it("are looked at when they come, and keep no places for those that have left", () => {
    const deadlines = new Deadlines();
    const entries = Array.from({ length: 5_000 }, (_, n) => new CountedEntry(n, 9_000 - n, 1e9));
    for (const entry of entries) deadlines.add(entry);
    const readsBefore = entries.reduce((sum, { reads }) => sum + reads, 0);
    for (let height = 0; height < 1_000; height++) deadlines.takeVoid(height, 0);
    expect(entries.reduce((sum, { reads }) => sum + reads, 0)).toBe(readsBefore);
    const tooMany = entries.filter((entry, index) => {
      deadlines.delete(entry);
      return deadlines.placeCount > 4 * (entries.length - index - 1) + 1_024;
    });
    expect(tooMany).toEqual([]);
    // Many that come and go behind one another take no more room than those that are there.
    for (let n = 0; n < 20_000; n++) {
      const entry = new CountedEntry(n, 1e6, 1e9);
      deadlines.add(entry);
      deadlines.delete(entry);
    }
    expect(deadlines.placeCount).toBeLessThanOrEqual(1_024);
  });

  it("are those that the chain holds a block against", () => {
    const random = createRandom(SEED);
    const timestamp = (seconds: number, nanos: number) =>
      new ProtoWriter().integer(1, seconds).integer(2, nanos).finish();
    const times = [
      undefined,
      timestamp(0, 5),
      timestamp(-62_135_596_800, 0),
      timestamp(-1, 1),
      timestamp(1, -1),
      timestamp(253_402_300_800, 0),
      ...Array.from({ length: 200 }, () =>
        timestamp(1_800_000_000 + random.integer(2), random.integer(1_000_000_000)),
      ),
    ];
    for (const timeoutTimestamp of times) {
      for (const timeoutHeight of [0n, 1n, 5n, 2n ** 63n, 2n ** 64n - 1n]) {
        const tx = { timeoutHeight, timeoutTimestamp };
        const height = 1 + random.integer(8);
        const timeMs = 1_800_000_000_000 + random.integer(2_000);
        const isLate = timeoutFault(tx, height) ?? timestampFault(tx, timeMs);
        const deadline = deadlineOf(tx);
        const isPast =
          deadline !== undefined && (deadline.height < height || deadline.timeMs < timeMs);
        expect({ tx, height, timeMs, isPast }).toEqual({ tx, height, timeMs, isPast: !!isLate });
      }
    }
  });
});
