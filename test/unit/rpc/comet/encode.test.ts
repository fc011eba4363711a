/** JSON of blocks, votes and results: byte for byte what CometBFT v0.38.17 makes of the same. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import {
  blockIdOf,
  decodeConsensusBlock,
  splitIntoParts,
} from "../../../../chain/consensus/consensus-block.js";
import { decodeVote } from "../../../../chain/consensus/vote.js";
import { hexToBytes } from "../../../../chain/hex.js";
import {
  blockIdJson,
  blockJson,
  paramsJson,
  voteJson,
} from "../../../../node/rpc/comet/json/encode.js";
import { resultJson, validatorUpdateJson } from "../../../../node/rpc/comet/json/results.js";

function fixture(name: string): unknown {
  const file = new URL(`../../../fixtures/consensus/${name}`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8"));
}

const source = fixture("cometbft.json") as {
  readonly blocks: readonly { readonly bytes: string }[];
  readonly votes: readonly { readonly bytes: string }[];
  readonly keys: readonly { readonly publicKey: string }[];
};
const expected = fixture("cometbft-rpc.json") as {
  readonly blocks: readonly { readonly sha256: string; readonly text?: string }[];
  readonly votes: readonly string[];
  readonly params: string;
  readonly result: string;
  readonly updates: readonly string[];
};

describe("JSON of the consensus RPC", () => {
  it("has blocks with evidence, absent and nil signatures as CometBFT writes them", () => {
    expect(source.blocks.length).toBe(expected.blocks.length);
    for (const [index, { bytes }] of source.blocks.entries()) {
      const encoded = hexToBytes(bytes);
      const block = decodeConsensusBlock(encoded);
      const block_id = blockIdJson(blockIdOf(block, splitIntoParts(encoded)));
      const text = JSON.stringify({ block_id, block: blockJson(block) });
      const wanted = expected.blocks[index];
      if (wanted?.text !== undefined) expect(text).toBe(wanted.text);
      const hash = createHash("sha256").update(text).digest("hex");
      expect([index, hash]).toEqual([index, wanted?.sha256]);
    }
  });

  it("has votes, for nil too, as CometBFT writes them", () => {
    const texts = source.votes.map(({ bytes }) => {
      const data = { Vote: voteJson(decodeVote(hexToBytes(bytes))) };
      return JSON.stringify({ type: "tendermint/event/Vote", value: data });
    });
    expect(texts).toEqual(expected.votes);
  });

  it("has parameters, results and validator updates as CometBFT writes them", () => {
    const params = {
      blockMaxBytes: 16_777_216,
      blockMaxGas: 600_000_000n,
      evidenceMaxAgeBlocks: 100_000,
      evidenceMaxAgeNs: 172_800_000_000_000n,
      evidenceMaxBytes: 1_048_576,
    };
    expect(JSON.stringify(paramsJson(params, 1))).toBe(expected.params);
    const result = resultJson({
      code: 4,
      log: "execution reverted",
      gasWanted: 21_000n,
      gasUsed: 20_999n,
      codespace: "evm",
      events: [
        {
          type: "transfer",
          attributes: [
            { key: "amount", value: "5atoken", index: true },
            { key: "note", value: "", index: false },
          ],
        },
      ],
    });
    expect(JSON.stringify(result)).toBe(expected.result);
    const publicKey = hexToBytes(source.keys[0]?.publicKey ?? "0x");
    const updates = [0n, 7n].map((power) => validatorUpdateJson({ publicKey, power }));
    expect(updates.map((update) => JSON.stringify(update))).toEqual(expected.updates);
  });
});
