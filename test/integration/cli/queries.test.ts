/** `causeway query` against a node: blocks by height or hash, their results, waiting, and pages of lists. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../chain/address.js";
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

/** What a query that succeeds answers. */
async function answerOf(...words: readonly string[]): Promise<unknown> {
  const { out, err, code } = await node.run("query", ...words, "--output", "json");
  expect([words, err, code]).toEqual([words, "", 0]);
  return JSON.parse(out);
}

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

it("takes words, commands and flags of the SDK's command line", async () => {
  const none = { proposals: [], pagination: { next_key: null, total: "0" } };
  for (const status of ["voting_period", "voting-period", "VotingPeriod", "passed", "3"]) {
    expect(await answerOf("gov", "proposals", "--status", status)).toEqual(none);
    expect(await answerOf("gov", "proposals", "--proposal-status", status)).toEqual(none);
  }
  const full = "PROPOSAL_STATUS_REJECTED";
  expect(await answerOf("gov", "proposals", "--status", full)).toEqual(none);
  const unknown = await node.run("query", "gov", "proposals", "--status", "voted");
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("proposal_status") });

  const hex = "77".repeat(20);
  const address_string = toBech32(parseAddress(`0x${hex}`));
  const address_bytes = Buffer.from(hex, "hex").toString("base64");
  for (const bytes of [hex, `0x${hex}`, address_bytes]) {
    expect(await answerOf("auth", "address-bytes-to-string", bytes)).toEqual({ address_string });
  }
  const bytes = await answerOf("auth", "address-string-to-bytes", address_string);
  expect(bytes).toEqual({ address_bytes });
  expect(await answerOf("auth", "bech32-prefix")).toEqual({ bech32_prefix: "addr" });
  expect(await answerOf("auth", "accounts")).toMatchObject({ accounts: expect.any(Array) });
  const byNumber = await node.run("query", "auth", "address-by-acc-num", "7");
  expect(byNumber).toMatchObject({ code: 1, err: expect.stringContaining("account number 7") });
  expect(await answerOf("bank", "spendable-balance", address_string, "atoken")).toEqual({
    balance: { denom: "atoken", amount: "0" },
  });

  const owners = async (...flags: readonly string[]) => {
    const page = (await answerOf("bank", "denom-owners", "atoken", ...flags)) as Owners;
    const { next_key, total } = page.pagination;
    return { owners: page.denom_owners.map(({ address }) => address), next_key, total };
  };
  const all = (await owners("--page-count-total")).owners;
  expect(all.length).toBeGreaterThan(2);
  const first = await owners("--page-limit", "2", "--page-count-total");
  expect(first).toMatchObject({ owners: all.slice(0, 2), total: `${all.length}` });
  const rest = await owners("--page-key", first.next_key ?? "", "--page-limit", "10000");
  expect(rest.owners).toEqual(all.slice(2));
  const second = await owners("--page-offset", "1", "--page-limit", "1");
  expect(second.owners).toEqual([all[1]]);
  expect((await owners("--page-reverse")).owners).toEqual(all.toReversed());
  expect((await owners("--limit", "10000")).owners).toEqual(all);
  expect((await owners("--page", "2", "--limit", "1000")).owners).toEqual(all.slice(1_000));
});

it("counts no pages of a length that the node does not give", async () => {
  for (const words of [
    ["bank", "denom-owners", "atoken", "--page", "2", "--limit", "1001"],
    ["staking", "validators", "--page", "2", "--limit", "5000"],
    ["txs", "--query", "tx.height>0", "--limit", "1001"],
    ["txs", "--query", "tx.height>0", "--page", "2", "--limit", "5000"],
  ]) {
    const { code, out, err } = await node.run("query", ...words);
    const text = expect.stringContaining("--limit is at most 1000");
    expect([words, code, out, err]).toEqual([words, 1, "", text]);
  }
  expect(await answerOf("txs", "--query", "tx.height>0", "--limit", "1000")).toMatchObject({
    limit: "1000",
  });
});

it("has a hundred transactions on a page, as the SDK's command line", async () => {
  const words = ["txs", "--events", "message.module=bank"];
  expect(await answerOf(...words)).toMatchObject({ limit: "100" });
  expect(await answerOf(...words, "--limit", "30")).toMatchObject({ limit: "30" });
});

it("knows the commands that the SDK has beside those of its modules", async () => {
  const proposal = { messages: [], metadata: "words", title: "Words", summary: "Nothing else" };
  const draft = node.write(
    "proposer.json",
    JSON.stringify({ ...proposal, deposit: `${10n ** 17n}atoken` }),
  );
  const mined = await node.done("gov", "submit-proposal", draft);
  const event = mined.events.find(({ type }) => type === "submit_proposal");
  const proposer = event?.attributes.find(({ key }) => key === "proposal_proposer")?.value;
  expect(proposer).toMatch(/^addr1/);
  expect(await answerOf("gov", "proposer", "1")).toEqual({ proposal_id: "1", proposer });
  const account = await answerOf("auth", "account", `${proposer}`);
  expect(await answerOf("account", `${proposer}`)).toEqual(account);

  const none = { evidence: [], pagination: { next_key: null, total: "0" } };
  for (const flags of [[], ["--limit", "5"], ["list"], ["list", "--limit", "5"]]) {
    expect(await answerOf("evidence", ...flags)).toEqual(none);
  }
  // Flags of the group's own command count for those below it, too.
  const elsewhere = await node.run("query", "evidence", "--node", "http://127.0.0.1:1", "list");
  expect(elsewhere).toMatchObject({ code: 1, err: expect.stringContaining("127.0.0.1:1") });
  for (const given of [["AB12"], ["evidence", "AB12"], ["AB12", "--page", "2"]]) {
    const { code, err } = await node.run("query", "evidence", ...given);
    expect([given, code, err]).toEqual([given, 1, expect.stringContaining("AB12 not found")]);
  }
});

it("finds who signed by the consensus key, as by its address", async () => {
  const info = (one: string) =>
    node.run("query", "slashing", "signing-info", one, "--output", "json", "--height", "2");
  const infos = await node.get("/cosmos/slashing/v1beta1/signing_infos");
  const { address = "" } = (infos.body as SigningInfos).info[0] ?? {};
  const set = await node.run("query", "comet-validator-set", "--output", "json");
  const { pub_key } = (JSON.parse(set.out) as ValidatorSet).validators[0] ?? {};
  const named = await info(address);
  expect(named).toMatchObject({ code: 0, err: "", out: expect.stringContaining(address) });
  expect(await info(JSON.stringify(pub_key))).toEqual(named);
  for (const wrong of ["{", "{}", JSON.stringify({ ...pub_key, "@type": "/x.PubKey" })]) {
    const { code, err } = await info(wrong);
    expect([wrong, code, err]).toEqual([wrong, 1, expect.stringMatching(/consensus key/)]);
  }
});

interface SigningInfos {
  readonly info: readonly { readonly address: string }[];
}

interface ValidatorSet {
  readonly validators: readonly { readonly pub_key: object }[];
}

interface Owners {
  readonly denom_owners: readonly { readonly address: string }[];
  readonly pagination: { readonly next_key: string | null; readonly total: string };
}

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
