/** `causeway tx` against a node: what it makes is judged by CosmJS' codecs, what it refuses by words. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import { Tx } from "cosmjs-types/cosmos/tx/v1beta1/tx";
import { MsgMultiSend, MsgSend } from "cosmjs-types/cosmos/bank/v1beta1/tx";
import { MsgVoteWeighted } from "cosmjs-types/cosmos/gov/v1/tx";
import { MsgEditValidator } from "cosmjs-types/cosmos/staking/v1beta1/tx";
import { encryptKeystoreJson, JsonRpcProvider, Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import type { MinedResponse } from "../../helpers/processes/command-line.js";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";

const TOKEN = 10n ** 18n;
const friend = toBech32(parseAddress(`0x${"31".repeat(20)}`));
const other = toBech32(parseAddress(`0x${"32".repeat(20)}`));

let node: StakedNode;
let account: string;
let operator: string;

beforeAll(async () => {
  node = await StakedNode.start({ "staking.unbonding_time": "600s" });
  const key = fs.readFileSync(`${node.home}/config/operator.key`, "utf8").trim();
  account = toBech32(parseAddress(new Wallet(key).address));
  operator = toBech32(parseAddress(new Wallet(key).address), VALIDATOR_PREFIX);
});

afterAll(() => node?.close());

/** What a command prints with --generate-only, as CosmJS reads its bytes. */
async function generated(...words: readonly string[]): Promise<Tx> {
  const made = await node.run("tx", ...words, "--generate-only");
  expect([made.err, made.code]).toEqual(["", 0]);
  const file = node.write("generated.json", made.out);
  const { out } = await node.run("tx", "encode", file);
  return Tx.decode(Buffer.from(out, "base64"));
}

function messageOf<T>(tx: Tx, type: { readonly typeUrl: string; decode(bytes: Uint8Array): T }): T {
  const [message] = tx.body?.messages ?? [];
  expect(message?.typeUrl).toBe(type.typeUrl);
  return type.decode(message?.value ?? new Uint8Array(0));
}

async function balance(address: string): Promise<bigint> {
  const { body } = await node.get(`/cosmos/bank/v1beta1/balances/${address}`);
  const [coin] = (body as { balances: { amount: string }[] }).balances;
  return BigInt(coin?.amount ?? 0);
}

describe("causeway tx makes", () => {
  it("the messages that others make", async () => {
    const sent = await generated("bank", "send", "operator", friend, "7atoken", "--note", "rent");
    expect(messageOf(sent, MsgSend)).toEqual(
      MsgSend.fromPartial({
        fromAddress: account,
        toAddress: friend,
        amount: [{ denom: "atoken", amount: "7" }],
      }),
    );
    expect([sent.body?.memo, sent.signatures, sent.authInfo?.fee?.gasLimit]).toEqual([
      "rent",
      [],
      200_000n,
    ]);
    const many = messageOf(
      await generated("bank", "multi-send", "operator", friend, other, "9atoken", "--split"),
      MsgMultiSend,
    );
    const coins = (amount: string) => [{ denom: "atoken", amount }];
    expect(many.inputs).toEqual([{ address: account, coins: coins("8") }]);
    expect(many.outputs.map(({ coins: own }) => own)).toEqual([coins("4"), coins("4")]);
    const votes = messageOf(
      await generated(
        "gov",
        "weighted-vote",
        "3",
        "yes=0.6,no=0.3,abstain=0.1",
        "--from",
        "operator",
      ),
      MsgVoteWeighted,
    );
    expect([votes.proposalId, votes.options]).toEqual([
      3n,
      [
        { option: 1, weight: "0.600000000000000000" },
        { option: 3, weight: "0.300000000000000000" },
        { option: 2, weight: "0.100000000000000000" },
      ],
    ]);
    const edit = messageOf(
      await generated(
        "staking",
        "edit-validator",
        "--new-moniker",
        "prima",
        "--commission-rate",
        "0.15",
        "--from",
        "operator",
      ),
      MsgEditValidator,
    );
    expect(edit).toMatchObject({
      validatorAddress: operator,
      commissionRate: "150000000000000000",
      description: { moniker: "prima", details: "[do-not-modify]" },
    });
  });

  it("bytes offline that a node takes once, however often they are sent", async () => {
    const { out } = await node.run(
      "tx",
      "bank",
      "send",
      friend,
      "11atoken",
      "--from",
      node.faucetKey,
      "--generate-only",
      "--gas",
      "90000",
      "--fees",
      "90000atoken",
    );
    const draft = node.write("draft.json", out);
    const offline = ["--offline", "--chain-id", "chain_6940-1", "--sequence", "0"];
    const signed = `${node.folder}/signed.json`;
    const words = ["tx", "sign", draft, "--from", node.faucetKey, ...offline];
    expect(await node.run(...words, "--output-document", signed)).toMatchObject({ code: 0 });
    const again = await node.run(...words, "--output-document", signed);
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("is there already")]);
    // Signing is deterministic: online gives the same bytes.
    const online = await node.run("tx", "sign", draft, "--from", node.faucetKey);
    expect(JSON.parse(online.out)).toEqual(JSON.parse(fs.readFileSync(signed, "utf8")));
    const mined = await node.run(
      "tx",
      "broadcast",
      signed,
      "--broadcast-mode",
      "block",
      "--output",
      "json",
    );
    const { txhash } = JSON.parse(mined.out) as MinedResponse;
    expect(await balance(friend)).toBe(11n);
    const twice = await node.run("tx", "broadcast", signed, "--output", "json");
    expect(twice.code).toBe(1);
    // As evmd's (SDK 0.54.3): known, and not of a wrong sequence, for which one would sign again.
    const known = { txhash, code: 19, codespace: "sdk" };
    expect(JSON.parse(twice.out)).toMatchObject(known);
    const waited = ["--broadcast-mode", "block", "--output", "json"];
    const thrice = await node.run("tx", "broadcast", signed, ...waited);
    expect([thrice.code, JSON.parse(thrice.out)]).toMatchObject([0, { txhash, code: 0 }]);
    const body = JSON.stringify({ tx_bytes: (await node.run("tx", "encode", signed)).out.trim() });
    const rest = await fetch(`${node.url("rest")}/cosmos/tx/v1beta1/txs`, { method: "POST", body });
    expect(await rest.json()).toMatchObject({ tx_response: known });
    expect(await balance(friend)).toBe(11n);
    const { out: encoded } = await node.run("tx", "encode", signed);
    const { out: decoded } = await node.run("tx", "decode", encoded);
    expect(JSON.parse(decoded)).toEqual(JSON.parse(fs.readFileSync(signed, "utf8")));
    const { signatures } = JSON.parse(fs.readFileSync(signed, "utf8")) as { signatures: string[] };
    const { body: own } = JSON.parse(out) as { body: { messages: { from_address: string }[] } };
    const payer = own.messages[0]?.from_address ?? "";
    for (const by of [
      [txhash],
      ["--type=hash", txhash],
      ["--type=acc_seq", `${payer}/0`],
      ["--type=signature", signatures.join(",")],
    ]) {
      const found = await node.run("query", "tx", ...by, "--output", "json");
      expect([by, found.code, JSON.parse(found.out)]).toMatchObject([by, 0, { txhash, code: 0 }]);
    }
    const missing = await node.run("query", "tx", "--type=acc_seq", `${payer}/77`);
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining("found no txs")]);
    const odd = await node.run("query", "tx", "--type=acc_seq", txhash);
    expect([odd.code, odd.err]).toEqual([1, expect.stringContaining("ADDRESS/SEQUENCE")]);
  });

  it("a sequence that an Ethereum transaction takes, which is told from one that may be taken still", async () => {
    const provider = new JsonRpcProvider(node.url("jsonRpc"), undefined, { batchMaxCount: 1 });
    provider.pollingInterval = 100;
    const wallet = new Wallet(`0x${"5e".repeat(32)}`, provider);
    const payer = toBech32(parseAddress(wallet.address));
    await node.done("bank", "send", payer, `${TOKEN}atoken`);
    const pay = (nonce: number) =>
      wallet.sendTransaction({ type: 0, nonce, to: wallet.address, gasLimit: 21_000n, value: 1n });
    const ask = (sequence: number) =>
      node.run("query", "tx", "--type=acc_seq", `${payer}/${sequence}`);
    expect((await ask(0)).err).toContain("the account's next one was 0, so one that waits");
    await (await pay(0)).wait();
    const taken = await ask(0);
    expect([taken.code, taken.out]).toEqual([1, ""]);
    expect(taken.err).toContain("found no txs matching given address and sequence combination");
    expect(taken.err).toContain("an Ethereum transaction took sequence 0");
    // It waits behind one that nobody sends.
    await pay(2);
    const waiting = await ask(2);
    expect([waiting.code, waiting.out]).toEqual([1, ""]);
    expect(waiting.err).toContain("the account's next one was 1, so one that waits");
    // Its code is one byte, 0x01.
    const data = "0x600160005360016000f3";
    const made = await wallet.sendTransaction({ type: 0, nonce: 1, data, gasLimit: 100_000n });
    const contract = (await made.wait())?.contractAddress ?? "";
    for (const sequence of [0, 1]) {
      const none = await node.run("query", "tx", "--type=acc_seq", `${contract}/${sequence}`);
      expect([sequence, none.code, none.out]).toEqual([sequence, 1, ""]);
      expect(none.err).toContain("is a contract, and contracts sign no transactions");
    }
    provider.destroy();
  });

  it("signatures of amino JSON, and of a keystore", async () => {
    const key = fs.readFileSync(node.faucetKey, "utf8").trim();
    const wallet = { address: new Wallet(key).address, privateKey: key };
    const options = { scrypt: { N: 1_024, r: 8, p: 1 } };
    const keystore = node.write(
      "payer.json",
      await encryptKeystoreJson(wallet, "open it", options),
    );
    const passphrase = node.write("secret", "open it\n");
    const before = await balance(other);
    const sent = await node.tx(
      "bank",
      "send",
      other,
      "5atoken",
      "--from",
      keystore,
      "--passphrase-file",
      passphrase,
      "--sign-mode",
      "amino-json",
    );
    expect([sent.code, sent.raw_log]).toEqual([0, ""]);
    expect(await balance(other)).toBe(before + 5n);
  });

  it("estimates, and fees by the node's price", async () => {
    const dry = await node.run(
      "tx",
      "staking",
      "delegate",
      operator,
      "5atoken",
      "--from",
      "operator",
      "--dry-run",
      "--gas-adjustment",
      "1",
      "--output",
      "json",
    );
    const { gas_estimate: gas } = JSON.parse(dry.out) as { gas_estimate: string };
    expect(dry.err).toBe(`gas estimate: ${gas}`);
    const sent = await node.tx(
      "staking",
      "delegate",
      operator,
      "5atoken",
      "--from",
      "operator",
      "--gas",
      "auto",
      "--gas-prices",
      "0.05atoken",
    );
    expect([sent.code, sent.raw_log]).toEqual([0, ""]);
    const fee = sent.events.find(({ type }) => type === "tx")?.attributes[0]?.value;
    const { gas_wanted: wanted } = sent as unknown as { gas_wanted: string };
    expect(fee).toBe(`${(BigInt(wanted) + 19n) / 20n}atoken`);
  });
});

describe("causeway tx refuses", () => {
  it("what would send from or to another than meant, or sign what nobody asked for", async () => {
    const key = fs.readFileSync(node.faucetKey, "utf8").trim();
    const open = node.write("open.key", `${key}\n`);
    const cases: readonly (readonly [readonly string[], string])[] = [
      [["bank", "send", friend, "5atoken", "--from", key], "never a key"],
      [["bank", "send", friend, "5atoken", "--from", key.slice(2)], "never a key"],
      [["bank", "send", key, friend, "5atoken"], "never a key"],
      [["bank", "send", "operator", friend, "5atoken", "--from", open], "first argument names"],
      [["bank", "send", friend, "5.5atoken", "--from", "operator"], "a whole number above 0"],
      [["bank", "send", friend, "5", "--from", "operator"], "with its denomination"],
      [["bank", "send", `${friend}x`, "5atoken", "--from", "operator"], "must be an account"],
      [["bank", "send", friend, "--from", "operator"], "takes <from> <to> <amount>"],
      [["bank", "send", friend, "5atoken", "--from", "nobody"], "no key of that name"],
      [["bank", "send", friend, "5atoken"], "--from must say who signs"],
      [["bank", "send", friend, "5atoken", "--from", friend], "is not known"],
      [
        ["bank", "send", friend, "5atoken", "--from", "operator", "--chain-id", "chain_6941-1"],
        "the node is on chain_6940-1",
      ],
      [
        [
          "bank",
          "send",
          friend,
          "5atoken",
          "--from",
          "operator",
          "--fees",
          "1atoken",
          "--gas-prices",
          "1atoken",
        ],
        "take one",
      ],
      [["bank", "send", friend, "5atoken", "--from", "operator", "--offline"], "--offline needs"],
      [["staking", "delegate", friend, "5atoken", "--from", "operator"], "must be a validator"],
      [["gov", "vote", "1", "maybe", "--from", "operator"], "A vote is yes, no"],
      [["gov", "weighted-vote", "1", "yes=0.6,no=0.3", "--from", "operator"], "add up to 1"],
    ];
    const before = await balance(account);
    for (const [words, reason] of cases) {
      const { code, out, err } = await node.run("tx", ...words, "--yes");
      expect([words, code, out]).toEqual([words, 1, ""]);
      expect(err).toContain(reason);
      expect(err).not.toContain(key.slice(2));
    }
    const unasked = await node.run("tx", "bank", "send", friend, "5atoken", "--from", "operator");
    expect([unasked.code, unasked.err]).toEqual([1, expect.stringContaining("--yes")]);
    expect(await balance(account)).toBe(before);
  });

  it("with the chain's code, and exit code 1", async () => {
    const { code, out } = await node.run(
      "tx",
      "bank",
      "send",
      friend,
      `${10n ** 40n}atoken`,
      "--from",
      "operator",
      "--yes",
      "--gas",
      "100000",
      "--fees",
      "2500atoken",
      "--output",
      "json",
    );
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      code: 5,
      codespace: "sdk",
      raw_log: expect.stringContaining("insufficient funds"),
    });
  });
});
