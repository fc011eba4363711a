/** `causeway query` against a node: blocks by height or hash, with and without --type, and pages of lists. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
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
