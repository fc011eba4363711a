/** Blocks of both kinds of transactions, decided by validators who know some of them and judge the rest. */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { transactionEventSteps } from "../../../chain/abci-event.js";
import { encodedRlpItems } from "../../../chain/encoding/rlp.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../chain/encoding/rlp-writer.js";
import { sha256 } from "../../../chain/hashes.js";
import { present } from "../../../chain/errors.js";
import { bytesToHash32, parseHexBytes } from "../../../chain/hex.js";
import { SYSTEM_ADDRESSES } from "../../../chain/networks.js";
import { cosmosItem } from "../../../chain/records/cosmos-items.js";
import { proveBlock } from "../../../node/statesync/snapshot/snapshot-block.js";
import { BlockRecords } from "../../../node/store/blocks/block-records.js";
import { encodeBlock } from "../../../node/store/blocks/whole-block-codec.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";
import { allAtOnce } from "../../../chain/steps/steps.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const faucet = Wallet.fromPhrase(MNEMONIC);
const from = parseAddress(faucet.address);
const to = parseAddress(`0x${"77".repeat(20)}`);
const other = parseAddress(`0x${"78".repeat(20)}`);
const chainId = "chain_6940-1";
const FEE = 4_000n;
const GAS_PRICE = 25_000_000n;

const coins = (amount: string) => [{ denom: "atoken", amount }];
const send = (amount: string, receiver = to) => ({
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: { fromAddress: toBech32(from), toAddress: toBech32(receiver), amount: coins(amount) },
});
const multiSend = {
  typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend",
  value: {
    inputs: [{ address: toBech32(from), coins: coins("30") }],
    outputs: [to, other].map((one, index) => ({
      address: toBech32(one),
      coins: coins(index === 0 ? "10" : "20"),
    })),
  },
};
const paid = { chainId, gas: 70_000, fee: coins(FEE.toString()) };

const evm = (nonce: number) =>
  faucet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: GAS_PRICE,
    gasLimit: 21_000n,
    to,
    value: 5n,
  });

let net: ValidatorNetwork;
let bytes: readonly Uint8Array[] = [];

function node(index: number): ValidatorNode {
  const found = net.nodes[index];
  if (found === undefined) throw new Error("no such node");
  return found;
}

beforeAll(async () => {
  const { genesis, seeds } = validatorGenesis(4, { faucet: faucet.address });
  net = new ValidatorNetwork(genesis, [...seeds, undefined]);
  for (const index of [0, 1, 2, 3, 4]) await net.start(index);
  await net.reach(2);
  const signed = signWithCosmJs(MNEMONIC, [
    { ...paid, messages: [send("7")], sequence: 1 },
    { ...paid, messages: [multiSend], sequence: 3, gas: 120_000 },
    // The second message pays a module: both are undone, the fee stays.
    {
      ...paid,
      messages: [send("9"), send("1", parseAddress(SYSTEM_ADDRESSES.feeCollector))],
      sequence: 4,
      gas: 150_000,
    },
    { ...paid, messages: [send("1")], sequence: 9 },
  ]);
  const [first, second, failing, gapped] = signed.map(({ raw }) => raw);
  if (first === undefined || second === undefined) throw new Error("nothing was signed");
  if (failing === undefined || gapped === undefined) throw new Error("nothing was signed");
  const raws = [await evm(0), await evm(2)].map(parseHexBytes);
  bytes = [first, second, failing];
  const [plain, later] = raws;
  if (plain === undefined || later === undefined) throw new Error("nothing was signed");
  // Only one node knows them: the others verify what a proposal brings.
  const answers = await node(1).pool.submit([plain, first, later, second, failing, gapped, first]);
  expect(answers.map((answer) => (answer instanceof Error ? answer.message : "taken"))).toEqual([
    "taken",
    "taken",
    "taken",
    "taken",
    "taken",
    "account sequence mismatch, expected 5, got 9: incorrect account sequence",
    "already known",
  ]);
  await until(() => net.nodes.every((one) => one?.stores.state.account(from)?.nonce === 5n), {
    timeoutMs: 60_000,
  });
  // The header after the last of them says what it came to.
  await net.reach(Math.max(...net.nodes.map((one) => one?.height ?? 0)) + 1);
});

afterAll(() => net.close());

function mined(one: ValidatorNode) {
  return bytes.map((raw) => {
    const place = one.view.locateBySdkHash(bytesToHash32(sha256(raw)));
    if (place === undefined) throw new Error("a transaction is not in a block");
    const { cosmos } = one.view.block(place.height)?.block ?? {};
    const found = cosmos?.find(({ index }) => index === place.index);
    if (found === undefined) throw new Error("the index names another place");
    return { height: place.height, ...found };
  });
}

describe("four validators and a follower", () => {
  it("come to the same results, with one nonce line for both kinds", () => {
    const [first, second, failing] = mined(node(0));
    expect(first?.result).toMatchObject({ code: 0, log: "" });
    expect(second?.result).toMatchObject({ code: 0, log: "" });
    expect(failing?.result.code).toBe(4);
    expect(failing?.result.log).toContain("message index: 1");
    expect(failing?.changes.filter(({ effective }) => effective)).toHaveLength(1);
    for (const one of net.nodes) {
      if (one === undefined) continue;
      expect(one.halts).toEqual([]);
      expect(mined(one)).toEqual(mined(node(0)));
      const state = one.stores.state;
      expect(state.account(to)?.balanceAtoken).toBe(5n + 5n + 7n + 10n);
      expect(state.account(other)?.balanceAtoken).toBe(20n);
    }
  });

  it("show the EVM its own transactions only", () => {
    for (const { height, tx } of mined(node(2))) {
      const outline = node(2).view.outline(height);
      expect(node(2).view.locate(tx.hash)).toBeUndefined();
      const receipts = [...node(2).view.pages(height)].flatMap((page) => page.receipts());
      expect(receipts).toHaveLength(outline?.transactionCount ?? -1);
      expect(outline?.header.gasUsed).toBe(BigInt(receipts.length) * 21_000n);
    }
  });

  it("emit the bank's events with the message's index last", () => {
    const [first] = mined(node(3));
    if (first === undefined) throw new Error("nothing was mined");
    const transfers = allAtOnce(transactionEventSteps(first)).filter(
      ({ type }) => type === "transfer",
    );
    const payer = toBech32(from);
    expect(transfers.map(({ attributes }) => attributes.map(({ value }) => value))).toEqual([
      [payer, toBech32(parseAddress(SYSTEM_ADDRESSES.feeCollector)), `${FEE}atoken`],
      [payer, toBech32(to), "7atoken", "0"],
    ]);
  });

  it("hand a block on in a snapshot, proven by the headers alone", () => {
    const one = node(2);
    for (const { height, tx } of mined(one)) {
      const [header, next] = [height, height + 1].map((at) => one.consensus.load(at)?.block.header);
      if (header === undefined || next === undefined) throw new Error("a header is missing");
      const encoded = new BlockRecords(one.stores.database).encoded(height);
      const { committed } = proveBlock(encoded, { header, next });
      expect(committed.block.cosmos?.map(({ tx: { hash } }) => hash)).toContain(tx.hash);
      expect(committed.block.cosmos?.flatMap(({ result }) => result.events)).toEqual([]);
      const cosmos = committed.block.cosmos?.map((of) => {
        return { ...of, result: { ...of.result, code: of.result.code + 1 } };
      });
      const block = { ...committed.block, ...(cosmos === undefined ? {} : { cosmos }) };
      const forged = { ...encoded, block: encodeBlock(block) };
      expect(() => proveBlock(forged, { header, next })).toThrow("the results of transactions");
    }
  });

  it("refuse one in a snapshot that says more of a Cosmos transaction than is proven", () => {
    const one = node(2);
    const { height } = present(mined(one).at(-1), "mined transaction");
    const [header, next] = [height, height + 1].map((at) => one.consensus.load(at)?.block.header);
    if (header === undefined || next === undefined) throw new Error("a header is missing");
    const encoded = new BlockRecords(one.stores.database).encoded(height);
    const { block } = proveBlock(encoded, { header, next }).committed;
    const { cosmos = [] } = block;
    const last = cosmos.at(-1);
    if (last === undefined) throw new Error("no Cosmos transaction");
    const { result } = last;
    const event = { type: "transfer", attributes: [] };
    const changes: readonly (readonly [Partial<typeof last>, string])[] = [
      [{ index: 7 }, "the place of a Cosmos transaction"],
      [{ index: 2 ** 32 }, "the place of a Cosmos transaction"],
      [{ result: { ...result, gasUsed: result.gasUsed + 2n ** 64n } }, "the gas of a Cosmos"],
      [{ result: { ...result, events: [event] } }, "the block cannot be read"],
    ];
    for (const [change, reason] of changes) {
      const items = [...cosmos.slice(0, -1), { ...last, ...change }].map(cosmosItem);
      const parts = [...encodedRlpItems(encoded.block).slice(0, 4), encodeRlp(items)];
      const forged = { ...encoded, block: encodeRlpListOfEncoded(parts) };
      expect(() => proveBlock(forged, { header, next })).toThrow(reason);
    }
  });

  it("give peers a block from disk as it was decided, without decoding its Cosmos transactions", async () => {
    const home = await net.halt(0);
    await net.start(0, { home });
    const { height } = present(mined(node(1)).at(-1), "mined transaction");
    const decode = jest.spyOn(BlockRecords.prototype, "cosmosAt");
    try {
      const given = present(allAtOnce(node(0).consensus.loadSteps(height)), "block of node 0");
      expect(decode).not.toHaveBeenCalled();
      const decided = present(node(1).consensus.load(height), "block of node 1");
      expect(given.block).toEqual(decided.block);
    } finally {
      decode.mockRestore();
    }
  });

  it("read the same from disk after a restart", async () => {
    const before = mined(node(0));
    const journals = await Promise.all(before.map(({ height }) => node(0).view.load(height)));
    const home = await net.halt(0);
    await net.start(0, { home });
    expect(mined(node(0))).toEqual(before);
    const after = await Promise.all(before.map(({ height }) => node(0).view.load(height)));
    expect(after.map((one) => one?.journal)).toEqual(journals.map((one) => one?.journal));
  });
});
