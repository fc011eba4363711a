/** A chain's table of compute weights is the one that its genesis names (D21), on either engine. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { WEIGHTS_VERSIONS, type WeightsVersion } from "../../../chain/evm/compute-weights.js";
import { ENGINE_NAMES } from "../../../node/blocks/engines.js";
import {
  encodeGenesis,
  type GenesisAccount,
  parseGenesis,
} from "../../../node/settings/genesis.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";

const WALLET = new Wallet(`0x${"17".repeat(32)}`);
const CONTRACT = parseAddress(`0x${"cc".repeat(20)}`);

/** CREATE of nothing; CALL of 0xffff with 1 atoken; LOG0 of a word. */
const CODE = ["5f5f5ff050", "5f5f5f5f600161ffff5ff150", "60205fa0"].join("");

/**
 * By hand, from the first table: the base; 21 bytes of code at 4; 14 opcodes at 40; CREATE 30,000 and its memory 0;
 * CALL 6,000, a cold account 8,000, coins 40,000; LOG0 3,000, a word of memory 8, 32 bytes at 5.
 */
const FIRST_NS =
  50_000 + 21 * 4 + 14 * 40 + 30_000 + (6_000 + 8_000 + 40_000) + (3_000 + 8 + 32 * 5);

const UNITS: Readonly<Record<WeightsVersion, number>> = {
  1: FIRST_NS,
  2: FIRST_NS + 28_000 + 8_000 + 32 * 2,
};

const chains: ExecutionChain[] = [];

afterEach(async () => {
  await Promise.all(chains.splice(0).map((chain) => chain.close()));
});

async function open(computeWeights: WeightsVersion): Promise<ExecutionChain> {
  const plain = testGenesis(WALLET.address.toLowerCase());
  const account: GenesisAccount = { balanceAtoken: 5n, code: `0x${CODE}`, storage: new Map() };
  const chain = await ExecutionChain.open({
    ...plain,
    params: { ...plain.params, computeWeights },
    alloc: new Map([...plain.alloc, [CONTRACT, account]]),
  });
  chains.push(chain);
  return chain;
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

  it("survives the text of a genesis", async () => {
    const { genesis } = await open(version);
    expect(parseGenesis(encodeGenesis(genesis)).params.computeWeights).toBe(version);
  });
});

describe("a version that this program does not know", () => {
  it("is refused with those that it does", () => {
    const text = encodeGenesis(testGenesis(WALLET.address.toLowerCase()));
    const newer = text.replace(/"computeWeights": ?[0-9]+/, '"computeWeights": 3');
    expect(newer).not.toBe(text);
    expect(() => parseGenesis(newer)).toThrow(/computeWeights/);
  });
});
