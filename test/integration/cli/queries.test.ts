/** `causeway query` against a node: blocks by height or hash, their results, waiting, and pages of lists. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";

interface BlockAnswer {
  readonly block_id: { readonly hash: string };
  readonly block: { readonly header: { readonly height: string } };
}

let node: StakedNode;

beforeAll(async () => {
  node = await StakedNode.start({});
});

afterAll(() => node?.close());

const ask = (...words: readonly string[]) =>
  node.run("query", "block", ...words, "--output", "json");

it("finds a block by its height and by its hash, as --type says and by what is given", async () => {
  const first = await ask("1");
  expect([first.err, first.code]).toEqual(["", 0]);
  const { block_id, block }: BlockAnswer = JSON.parse(first.out);
  expect(block.header.height).toBe("1");
  const hash = Buffer.from(block_id.hash, "base64").toString("hex").toUpperCase();
  const prefixed = `0x${hash.toLowerCase()}`;
  for (const words of [["--type=height", "1"], ["--type=hash", hash], [hash], [prefixed]]) {
    const { code, out, err } = await ask(...words);
    expect([words, err, code, out]).toEqual([words, "", 0, first.out]);
  }
  for (const words of [[], ["--type=height"], ["--type=hash"]]) {
    const newest: BlockAnswer = JSON.parse((await ask(...words)).out);
    expect(Number(newest.block.header.height)).toBeGreaterThan(0);
  }
});

it("says what a block is named by", async () => {
  for (const [words, text] of [
    [["--type=hash", "1"], "64 hex digits"],
    [["--type=height", "1e3"], "whole number"],
    [["1e3"], "whole number"],
    [["--type=number", "1"], "height or hash"],
    [["--type=hash", "ab".repeat(32)], "no block"],
  ] as const) {
    const { code, err } = await ask(...words);
    expect([words, code, err]).toEqual([words, 1, expect.stringContaining(text)]);
  }
});

it("takes the next_key of a page, and refuses what no page gave", async () => {
  const page = (key: string) =>
    node.run("query", "bank", "total", "--output", "json", "--page-key", key);
  for (const key of ["zz", "zz==", "z", "====", "not base64!"]) {
    const { code, err } = await page(key);
    expect([key, code, err]).toEqual([key, 1, expect.stringContaining("--page-key must be")]);
  }
  for (const key of ["", "AAAAAAAAAAE=", "AAAAAAAAAAE"]) {
    const { code, err } = await page(key);
    expect([key, err, code]).toEqual([key, "", 0]);
  }
});

describe("what happened in blocks", () => {
  const query = (...words: readonly string[]) =>
    node.run("query", ...words, "--output", "json").then(({ out, err, code }) => {
      return { answer: code === 0 ? (JSON.parse(out) as Answer) : undefined, err, code };
    });

  interface Answer {
    readonly total_count?: string;
    readonly count?: string;
    readonly page_number?: string;
    readonly page_total?: string;
    readonly blocks?: readonly { readonly header: { readonly height: string } }[];
    readonly height?: string;
    readonly txhash?: string;
    readonly finalize_block_events?: readonly { readonly type: string }[];
  }

  it("finds blocks by their events, a page at a time", async () => {
    const words = ["--query", "block.height >= 1 AND block.height <= 2", "--limit", "1"];
    for (const [order, page, height] of [
      ["asc", "1", "1"],
      ["asc", "2", "2"],
      ["desc", "1", "2"],
    ] as const) {
      const one = await query("blocks", ...words, "--page", page, "--order_by", order);
      expect([order, page, one.err, one.code]).toEqual([order, page, "", 0]);
      expect(one.answer).toMatchObject({
        total_count: "2",
        count: "1",
        page_number: page,
        page_total: "2",
        blocks: [{ header: { height } }],
      });
    }
    for (const [flags, text] of [
      [[], "needs --query"],
      [["--query", "block.height"], "parse query"],
      [["--query", "block.height=1", "--order_by", "up"], "asc or desc"],
      [["--query", "block.height=1", "--limit", "101"], "100"],
    ] as const) {
      const refused = await query("blocks", ...flags);
      expect([flags, refused.code, refused.err]).toEqual([flags, 1, expect.stringContaining(text)]);
    }
  });

  it("shows the results of a block, the newest one's without a height", async () => {
    const { answer } = await query("block-results", "2");
    expect(answer?.height).toBe("2");
    expect(answer?.finalize_block_events?.map(({ type }) => type)).toContain("mint");
    expect(Number((await query("block-results")).answer?.height)).toBeGreaterThan(1);
    const refused = await query("block-results", "1e3");
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("whole number")]);
  });

  it("waits for a transaction, and says when none came", async () => {
    const words = ["bank", "send", "0x00000000000000000000000000000000000ca75e", "1atoken"];
    const mined = await node.done(...words);
    const { answer, err, code } = await query("wait-tx", mined.txhash);
    expect([err, code]).toEqual(["", 0]);
    expect(answer).toMatchObject({ txhash: mined.txhash, height: mined.height });
    const old = await query("event-query-tx-for", `0x${mined.txhash.toLowerCase()}`);
    expect(old.answer).toEqual(answer);
    const never = await query("wait-tx", "ab".repeat(32), "--timeout", "0s");
    expect([never.code, never.err]).toEqual([1, expect.stringContaining("AB".repeat(32))]);
    for (const [flags, text] of [
      [["ab"], "64 hex digits"],
      [["ab".repeat(32), "--timeout", "soon"], "--timeout"],
    ] as const) {
      const refused = await query("wait-tx", ...flags);
      expect([flags, refused.code, refused.err]).toEqual([flags, 1, expect.stringContaining(text)]);
    }
  });
});
