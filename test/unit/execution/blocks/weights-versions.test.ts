/** A chain's table of compute weights is the one that its genesis names (D21), on either engine. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { toBeHex, Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { WEIGHTS_VERSIONS, type WeightsVersion } from "../../../../chain/evm/compute-weights.js";
import { ZERO_HASH } from "../../../../chain/hex.js";
import { ENGINE_NAMES } from "../../../../node/blocks/engines.js";
import {
  encodeGenesis,
  type GenesisAccount,
  parseGenesis,
} from "../../../../node/settings/genesis.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";

const WALLET = new Wallet(`0x${"17".repeat(32)}`);
const CONTRACT = parseAddress(`0x${"cc".repeat(20)}`);

/** CREATE of nothing; CALL of 0xffff with 1 atoken; LOG0 of a word; LOG1 to LOG4 of nothing. */
const CODE = [
  "5f5f5ff050",
  "5f5f5f5f600161ffff5ff150",
  "60205fa0",
  "5f5f5fa1",
  "5f5f5f5fa2",
  "5f5f5f5f5fa3",
  "5f5f5f5f5f5fa4",
].join("");

/**
 * By hand, from the first table: the base; 43 bytes of code at 4; 32 opcodes at 40; CREATE 30,000 and its memory 0;
 * CALL 6,000, a cold account 8,000, coins 40,000; LOG0 3,000, a word of memory 8, 32 bytes at 5; LOG1 to LOG4.
 */
const FIRST_NS =
  50_000 +
  (43 * 4 + 32 * 40) +
  30_000 +
  (6_000 + 8_000 + 40_000) +
  (3_000 + 8 + 32 * 5) +
  (5_000 + 7_000 + 9_000 + 11_000);

const SECOND_NS = FIRST_NS + 28_000 + 8_000 + 32 * 2;

const UNITS: Readonly<Record<WeightsVersion, number>> = {
  1: FIRST_NS,
  2: SECOND_NS,
  3: SECOND_NS,
  4: SECOND_NS,
  5: SECOND_NS - 32 * 20 + 27_000 + 32 * 8 + (2 * 6_500 - 1_000 - 1_000 - 2_000 - 3_000),
};

/** Stores its first word of input: PUSH0 CALLDATALOAD PUSH0 SSTORE. */
const STORING = "5f355f55";

/** By hand: the base, and 32 bytes of input at 4; what the four opcodes always cost. */
const STORING_NS: Readonly<Record<WeightsVersion, number>> = {
  1: 50_000 + 32 * 4 + (40 + 350 + 40 + 1_500),
  2: 50_000 + 32 * 4 + (40 + 350 + 40 + 1_500),
  3: 50_000 + 32 * 4 + (40 + 350 + 40 + 1_500),
  4: 50_000 + 32 * 4 + (40 + 350 + 40 + 1_500),
  5: 50_000 + 32 * 4 + (20 + 180 + 20 + 1_200),
};

/**
 * A slot's first change; read and change where the block has changed it; the same where it has put it
 * back; the first change of the account's storage; the four bytes of code once more.
 */
const SLOT_NS: Readonly<
  Record<
    WeightsVersion,
    {
      change: number;
      again: readonly [number, number];
      back: readonly [number, number];
      storage: number;
      code: number;
    }
  >
> = {
  1: { change: 30_000, again: [10_000, 30_000], back: [10_000, 30_000], storage: 0, code: 4 * 4 },
  2: { change: 30_000, again: [10_000, 30_000], back: [10_000, 30_000], storage: 0, code: 4 * 4 },
  3: { change: 30_000, again: [1_000, 2_000], back: [10_000, 30_000], storage: 0, code: 4 * 4 },
  4: { change: 30_000, again: [1_000, 2_000], back: [10_000, 30_000], storage: 0, code: 4 * 4 },
  5: { change: 24_000, again: [1_000, 2_000], back: [1_000, 2_000], storage: 30_000, code: 0 },
};

/** Copies one byte of 0xee's code: PUSH1 PUSH0 PUSH0 PUSH20 EXTCODECOPY. */
const COPYING = `60015f5f73${"ee".repeat(20)}3c`;

const LARGE = parseAddress(`0x${"ee".repeat(20)}`);
const LARGE_BYTES = 24_576;

/** An opcode that is not listed. */
const OPCODE_NS: Readonly<Record<WeightsVersion, number>> = { 1: 40, 2: 40, 3: 40, 4: 40, 5: 20 };

/**
 * By hand: the base; 26 bytes of code at 4; the copy; a cold account; a word of memory and one that is
 * copied. Four opcodes that push come to it.
 */
const COPYING_NS = 50_000 + 26 * 4 + 900 + 8_000 + 8 + 5;

/** What a version adds for the code that is read, and for each account and slot of a list. */
const READ_NS: Readonly<Record<WeightsVersion, { code: number; account: number; slot: number }>> = {
  1: { code: 0, account: 0, slot: 0 },
  2: { code: 0, account: 0, slot: 0 },
  3: { code: 0, account: 0, slot: 0 },
  4: { code: 4 * LARGE_BYTES, account: 8_000, slot: 10_000 },
  5: { code: 4 * LARGE_BYTES, account: 8_000, slot: 10_000 },
};

const chains: ExecutionChain[] = [];

afterEach(async () => {
  await Promise.all(chains.splice(0).map((chain) => chain.close()));
});

async function open(computeWeights: WeightsVersion, code = CODE): Promise<ExecutionChain> {
  const plain = testGenesis(WALLET.address.toLowerCase());
  const storage = new Map([[ZERO_HASH, 7n]]);
  const account: GenesisAccount = { balanceAtoken: 5n, code: `0x${code}`, storage };
  const large: GenesisAccount = {
    balanceAtoken: 0n,
    code: `0x${"5b".repeat(LARGE_BYTES)}`,
    storage: new Map(),
  };
  const chain = await ExecutionChain.open({
    ...plain,
    params: { ...plain.params, computeWeights },
    alloc: new Map([...plain.alloc, [CONTRACT, account], [LARGE, large]]),
  });
  chains.push(chain);
  return chain;
}

/** Calls a contract with an access list. */
function listing(
  chain: ExecutionChain,
  to: string,
  accessList: { address: string; storageKeys: string[] }[],
  nonce = 0,
): Promise<string> {
  return WALLET.signTransaction({
    type: 1,
    chainId: chain.genesis.evmChainId,
    to,
    nonce,
    gasLimit: 100_000,
    gasPrice: 25_000_000_000n,
    accessList,
  });
}

describe.each(WEIGHTS_VERSIONS)("version %d of the weights", (version) => {
  it.each(ENGINE_NAMES)("is what a chain counts by whose genesis names it (%s)", async (engine) => {
    const chain = await open(version);
    const raw = await WALLET.signTransaction({
      chainId: chain.genesis.evmChainId,
      to: CONTRACT,
      nonce: 0,
      gasLimit: 500_000,
      gasPrice: 25_000_000_000n,
    });
    const { outcomes } = await chain.execute([raw], [], engine);
    expect(outcomes).toMatchObject([
      { included: true, receipt: { status: 1 }, computeNs: UNITS[version] },
    ]);
  });

  it.each(ENGINE_NAMES)("knows slots that the block has changed by then (%s)", async (engine) => {
    const chain = await open(version, STORING);
    const store = (value: number, nonce: number, gasLimit = 100_000) =>
      WALLET.signTransaction({
        chainId: chain.genesis.evmChainId,
        to: CONTRACT,
        nonce,
        gasLimit,
        gasPrice: 25_000_000_000n,
        data: toBeHex(value, 32),
      });
    // The slot holds 7. The second one ends out of gas behind its look at the slot; back to 7 the
    // block has changed nothing, though somebody has paid for it.
    const raws = [store(8, 0), store(9, 1, 23_900), store(9, 2), store(7, 3), store(5, 4)];
    const { outcomes } = await chain.execute(await Promise.all(raws), [], engine);
    const units = outcomes.map((outcome) => outcome.included && outcome.computeNs);
    const { change, again, back, storage, code } = SLOT_NS[version];
    const [readNs, changeNs] = again;
    const base = STORING_NS[version];
    const next = base + code + readNs + changeNs;
    const last = base + code + back[0] + back[1];
    const first = base + 4 * 4 + 10_000 + change + storage;
    expect(units).toEqual([first, base + code + readNs, next, next, last]);
  });

  it.each(ENGINE_NAMES)("counts whole codes that are copied from (%s)", async (engine) => {
    const chain = await open(version, COPYING);
    const copyingNs = COPYING_NS + 4 * OPCODE_NS[version] + READ_NS[version].code;
    const { outcomes } = await chain.execute([await listing(chain, CONTRACT, [])], [], engine);
    expect(outcomes).toMatchObject([{ receipt: { status: 1 }, computeNs: copyingNs }]);
  });

  it.each(ENGINE_NAMES)("counts what access lists make warm (%s)", async (engine) => {
    const chain = await open(version, "00");
    const nobody = `0x${"ab".repeat(20)}`;
    const list = [
      { address: CONTRACT, storageKeys: [0, 1, 2].map((key) => toBeHex(key, 32)) },
      { address: nobody, storageKeys: [] },
    ];
    // The same for code as for a plain transfer.
    const raws = [await listing(chain, CONTRACT, list), await listing(chain, nobody, list, 1)];
    const { outcomes } = await chain.execute(raws, [], engine);
    const { account, slot } = READ_NS[version];
    const transferNs = 50_000 + 2 * account + 3 * slot;
    expect(outcomes.map((outcome) => outcome.included && outcome.computeNs)).toEqual([
      transferNs + 4 + OPCODE_NS[version],
      transferNs,
    ]);
  });

  it("survives the text of a genesis", async () => {
    const { genesis } = await open(version);
    expect(parseGenesis(encodeGenesis(genesis)).params.computeWeights).toBe(version);
  });
});

describe("a version that this program does not know", () => {
  it("is refused with those that it does", () => {
    const text = encodeGenesis(testGenesis(WALLET.address.toLowerCase()));
    const newer = text.replace(/"computeWeights": ?[0-9]+/, '"computeWeights": 6');
    expect(newer).not.toBe(text);
    expect(() => parseGenesis(newer)).toThrow(/computeWeights/);
  });
});
