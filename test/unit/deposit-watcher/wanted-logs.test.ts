/** Transfers of a run as they are read: what is let go of at once, and what is never. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import { readTokenRun } from "../../../deposit-watcher/tokens/token-run.js";
import { RunTooLong, WantedLogs } from "../../../deposit-watcher/tokens/wanted-logs.js";
import type { TransferLog } from "../../../rpc-client/tokens/transfer-logs.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const [alice, stranger, listed, unlisted] = [1, 2, 3, 4].map(testAddress) as [
  Address,
  Address,
  Address,
  Address,
];
const hashAt = (height: number): Hash32 =>
  parseHash32(`0x${height.toString(16).padStart(64, "0")}`);
const run = [5, 6].map((height) => ({ height, hash: hashAt(height) }));
const watched = {
  has: (address: Address) => address === alice,
  customerOf: () => undefined,
  walletFrom: () => undefined,
  assetOf: (contract: Address) => (contract === listed ? "GOLD" : undefined),
};

function transfer(parts: Partial<TransferLog>): TransferLog {
  const height = parts.height ?? 5;
  const place = { height, blockHash: hashAt(height), txHash: hashAt(1), txIndex: 0, logIndex: 0 };
  const sides = { contract: unlisted, from: stranger, to: alice, value: 1n };
  return { ...place, ...sides, standard: "erc20", isStandard: true, ...parts };
}

const keeps = (logs: WantedLogs, parts: Partial<TransferLog>) => logs.keep(transfer(parts));

describe("transfers of a run", () => {
  it("are kept where they name an address of ours and move something", () => {
    const logs = new WantedLogs(watched, run);
    expect(keeps(logs, {})).toBe(true);
    expect(keeps(logs, { contract: listed })).toBe(true);
    expect(keeps(logs, { contract: listed, from: alice, to: stranger })).toBe(true);
    expect(keeps(logs, { from: alice, to: stranger })).toBe(false);
    expect(keeps(logs, { to: stranger })).toBe(false);
    expect(keeps(logs, { value: 0n })).toBe(false);
    expect(keeps(logs, { contract: listed, value: 0n })).toBe(false);
    expect(keeps(logs, { standard: "erc721", value: 0n })).toBe(true);
    // Of another block than was matched: somebody has to see it.
    expect(keeps(logs, { blockHash: hashAt(7), to: stranger })).toBe(true);
    expect(logs.leftOut).toBe(0);
  });

  it("of contracts that nobody listed are a thousand of one block; of listed ones all", () => {
    const logs = new WantedLogs(watched, run);
    const kept = (parts: Partial<TransferLog>) =>
      Array.from({ length: 1_500 }, () => keeps(logs, parts)).filter(Boolean).length;
    expect([kept({}), kept({ height: 6 }), kept({ contract: listed })]).toEqual([
      1_000, 1_000, 1_500,
    ]);
    expect(logs.leftOut).toBe(1_000);
  });

  it("of a stranger do not hide what another one sent, up to four thousand of a block", () => {
    const logs = new WantedLogs(watched, run);
    const contracts = Array.from({ length: 6 }, (_, n) => `0x${`e${n}`.repeat(20)}` as Address);
    const kept = contracts.map((contract) => {
      return Array.from({ length: 1_200 }, () => keeps(logs, { contract })).filter(Boolean).length;
    });
    expect(kept).toEqual([1_000, 1_000, 1_000, 1_000, 0, 0]);
    expect(logs.leftOut).toBe(6 * 1_200 - 4_000);
  });

  it("of strangers are fifty thousand of all its blocks, and a hundred of each block behind", () => {
    const heights = Array.from({ length: 20 }, (_, index) => 5 + index);
    const logs = new WantedLogs(
      watched,
      heights.map((height) => ({ height, hash: hashAt(height) })),
    );
    const contracts = Array.from({ length: 4 }, (_, n) => `0x${`e${n}`.repeat(20)}` as Address);
    const kept = heights.map((height) =>
      contracts
        .flatMap((contract) =>
          Array.from({ length: 1_000 }, () => keeps(logs, { contract, height })),
        )
        .filter(Boolean),
    );
    const counts = kept.map(({ length }) => length);
    // Twelve full blocks, what is left of the bound, and few of each other one: none is without any.
    expect(counts.slice(0, 14)).toEqual([...Array<number>(12).fill(4_000), 2_000, 100]);
    expect(new Set(counts.slice(13))).toEqual(new Set([100]));
    expect(logs.leftOut).toBe(20 * 4_000 - counts.reduce((sum, count) => sum + count, 0));
    expect(keeps(logs, { contract: listed, height: 24 })).toBe(true);
  });

  it("of listed tokens are all kept, of so many blocks as are not too much together", () => {
    const heights = [5, 6, 7];
    const logs = new WantedLogs(
      watched,
      heights.map((height) => ({ height, hash: hashAt(height) })),
    );
    const keepMany = (height: number, count: number) => {
      for (let kept = 0; kept < count; kept += 1) keeps(logs, { contract: listed, height });
    };
    keepMany(5, 30_000);
    keepMany(6, 20_000);
    expect(() => keepMany(6, 1)).toThrow(new RunTooLong(1));
    expect(() => keepMany(7, 1)).toThrow(new RunTooLong(2));
    // A single block cannot be cut: it is as large as it is.
    const one = new WantedLogs(watched, run.slice(0, 1), 1);
    expect([1, 2, 3].map(() => keeps(one, { contract: listed }))).toEqual([true, true, true]);
  });

  it("tell all who received, and of too many how they begin", () => {
    const logs = new WantedLogs(watched, run);
    keeps(logs, { to: stranger, value: 0n });
    const [later, other] = [`0xab${"0".repeat(38)}`, `0xcd${"0".repeat(38)}`] as Address[];
    expect([stranger, later, other].map((one) => one && logs.has(one))).toEqual([
      true,
      false,
      false,
    ]);
    for (let n = 0; n < 200_000; n += 1) {
      const to = `0x${n.toString(16).padStart(40, "0")}` as Address;
      keeps(logs, { to });
    }
    keeps(logs, { to: later ?? stranger });
    expect([stranger, later, other].map((one) => one && logs.has(one))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("are read and judged where a block has far more of them than are recorded", async () => {
    const found = Array.from({ length: 5_000 }, (_, logIndex) => transfer({ logIndex }));
    const node = {
      transferLogs: async (
        _range: unknown,
        options: { isWanted?: (log: TransferLog) => boolean },
      ) => found.filter((log) => options.isWanted?.(log) ?? true),
      tokenBalances: async () => [],
      tokenCodes: async () => [],
    };
    const { signal } = new AbortController();
    const nodes = { first: node, second: undefined };
    const explained = async () => new Set<string>();
    const input = { run: run as never, sides: [], contracts: [listed], explained };
    const { sightings, leftOut } = await readTokenRun(nodes, watched, input, { signal });
    expect([sightings.length, leftOut]).toEqual([1_000, 4_000]);
    expect(sightings[0]).toMatchObject({ reason: "UNKNOWN_TOKEN", address: alice, claimed: 1n });
  });

  it("count at least one of each block of which listed tokens alone could be read", async () => {
    const node = {
      transferLogs: async (
        _range: unknown,
        options: { onLeftOut?: (height: number) => void },
      ): Promise<TransferLog[]> => {
        for (const height of [5, 6]) options.onLeftOut?.(height);
        return [];
      },
      tokenBalances: async () => [],
      tokenCodes: async () => [],
    };
    const { signal } = new AbortController();
    const explained = async () => new Set<string>();
    const input = { run: run as never, sides: [], contracts: [], explained };
    const nodes = { first: node, second: undefined };
    expect((await readTokenRun(nodes, watched, input, { signal })).leftOut).toBe(2);
  });
});
