/**
 * Events of transactions that `causeway tx` makes: every face of a node finds one by the
 * specification's names.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import { Wallet } from "ethers";
import { WebSocket } from "ws";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";
import { until } from "../../helpers/until.js";

const TOKEN = 10n ** 18n;
const friend = toBech32(parseAddress(`0x${"31".repeat(20)}`));

let node: StakedNode;
let faucet: string;
let operator: string;

beforeAll(async () => {
  node = await StakedNode.start({ "staking.unbonding_time": "600s" });
  faucet = toBech32(
    parseAddress(new Wallet(fs.readFileSync(node.faucetKey, "utf8").trim()).address),
  );
  const key = fs.readFileSync(`${node.home}/config/operator.key`, "utf8").trim();
  operator = toBech32(parseAddress(new Wallet(key).address), VALIDATOR_PREFIX);
});

afterAll(() => node?.close());

describe("events", () => {
  /** Conditions by which every face of the node has to find one transaction. */
  async function found(conditions: readonly string[], hash: string): Promise<void> {
    const quoted = conditions.map((one) => one.replace(/=(.*)$/, "='$1'"));
    const get = async (query: string) => {
      const { status, body } = await node.get(`/cosmos/tx/v1beta1/txs?${query}`);
      expect([query, status]).toEqual([query, 200]);
      return (body as { tx_responses: { txhash: string }[] }).tx_responses.map((one) => one.txhash);
    };
    const text = encodeURIComponent(quoted.join(" AND "));
    const search = async (query: string) => {
      const url = `${node.url("cometRpc")}/tx_search?query=${encodeURIComponent(`"${query}"`)}`;
      const { result } = (await (await fetch(url)).json()) as {
        result: { txs: { hash: string }[] };
      };
      return result.txs.map((one) => one.hash);
    };
    const command = async (...words: readonly string[]) => {
      const { out } = await node.run("query", "txs", ...words, "--output", "json");
      return (JSON.parse(out) as { txs: { txhash: string }[] }).txs.map((one) => one.txhash);
    };
    const answers = {
      raw: await get(`events=${quoted.join("&")}`),
      repeated: await get(quoted.map((one) => `events=${encodeURIComponent(one)}`).join("&")),
      query: await get(`query=${text}`),
      tx_search: await search(quoted.join(" AND ")),
      ampersand: await search(quoted.join(" & ")),
      events: await command("--events", conditions.join("&")),
      "--query": await command("--query", quoted.join(" AND ")),
    };
    for (const [face, hashes] of Object.entries(answers)) {
      expect([face, conditions, hashes]).toEqual([
        face,
        conditions,
        expect.arrayContaining([hash]),
      ]);
    }
  }

  it("of the specification are found by REST, tx_search, the command line and a subscription", async () => {
    const socket = new WebSocket(node.url("cometRpc").replace("http", "ws") + "/websocket");
    await new Promise((resolve) => socket.once("open", resolve));
    const pushed: string[] = [];
    socket.on("message", (data: Buffer) => {
      const { result } = JSON.parse(data.toString()) as {
        result: { events?: { "tx.hash"?: string[] } };
      };
      pushed.push(...(result.events?.["tx.hash"] ?? []));
    });
    const query = `delegate.validator='${operator}' & delegate.amount='3000000atoken'`;
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscribe", params: { query } }));

    const from = ["--from", node.faucetKey];
    const delegated = await node.tx("staking", "delegate", operator, "3000000atoken", ...from);
    expect([delegated.code, delegated.raw_log]).toEqual([0, ""]);
    await until(() => pushed.includes(delegated.txhash), { timeoutMs: 30_000, what: "the push" });
    socket.close();
    await found(
      [`delegate.delegator=${faucet}`, `delegate.validator=${operator}`],
      delegated.txhash,
    );
    await found(["delegate.amount=3000000atoken", "message.module=staking"], delegated.txhash);

    const withdrawn = await node.tx("distribution", "withdraw-rewards", operator, ...from);
    await found(
      [`withdraw_rewards.delegator=${faucet}`, `withdraw_rewards.validator=${operator}`],
      withdrawn.txhash,
    );
    const unbond = await node.tx("staking", "unbond", operator, "1000000atoken", ...from);
    const [ended] = unbond.events.filter(({ type }) => type === "unbond");
    expect(ended?.attributes.map(({ key }) => key).slice(0, 4)).toEqual([
      "delegator",
      "validator",
      "amount",
      "completion_time",
    ]);
    await found([`unbond.validator=${operator}`, "unbond.amount=1000000atoken"], unbond.txhash);
    const sent = await node.tx("bank", "send", friend, "77atoken", ...from);
    await found(
      [`transfer.sender=${faucet}`, `transfer.recipient=${friend}`, "transfer.amount=77atoken"],
      sent.txhash,
    );
    const cancel = await node.tx(
      "staking",
      "cancel-unbond",
      operator,
      "400000atoken",
      unbond.height,
      ...from,
    );
    expect([cancel.code, cancel.raw_log]).toEqual([0, ""]);
    await found(["cancel_unbonding_delegation.amount=400000atoken"], cancel.txhash);
    const address = await node.tx("distribution", "set-withdraw-addr", friend, ...from);
    expect([address.code, address.raw_log]).toEqual([0, ""]);
    const all = await node.tx("distribution", "withdraw-all-rewards", ...from);
    expect([all.code, all.raw_log]).toEqual([0, ""]);
    await found([`transfer.recipient=${friend}`, "message.module=distribution"], all.txhash);
    const pool = await node.tx("distribution", "fund-community-pool", "12345atoken", ...from);
    expect([pool.code, pool.raw_log]).toEqual([0, ""]);
    const { out } = await node.run("query", "distribution", "community-pool", "--output", "json");
    expect(JSON.parse(out)).toEqual({
      pool: [{ denom: "atoken", amount: "12345.000000000000000000" }],
    });
  });

  it("of redelegation, registration and burnt fees", async () => {
    const joiner = new Wallet(`0x${"78".repeat(32)}`);
    const key = node.write("joiner.key", `${joiner.privateKey}\n`);
    const text = toBech32(parseAddress(joiner.address));
    const validator = toBech32(parseAddress(joiner.address), VALIDATOR_PREFIX);
    await node.tx("bank", "send", text, `${9n * TOKEN}atoken`, "--from", node.faucetKey);
    const registered = await node.tx(
      "validator",
      "register",
      "--from",
      key,
      "--moniker",
      "late",
      "--amount",
      `${TOKEN}atoken`,
      "--pubkey",
      `{"@type":"/cosmos.crypto.ed25519.PubKey","key":"${Buffer.alloc(32, 9).toString("base64")}"}`,
    );
    expect([registered.code, registered.raw_log]).toEqual([0, ""]);
    const event = registered.events.find(({ type }) => type === "register_validator");
    expect(event?.attributes.slice(0, 3)).toMatchObject([
      { key: "validator", value: validator },
      { key: "burn_amount", value: `${TOKEN}atoken` },
      { key: "self_delegation", value: `${TOKEN}atoken` },
    ]);
    await found([`register_validator.validator=${validator}`], registered.txhash);
    await found([`register_validator.burn_amount=${TOKEN}atoken`], registered.txhash);
    const moved = await node.tx(
      "staking",
      "redelegate",
      operator,
      validator,
      "500000atoken",
      "--from",
      node.faucetKey,
    );
    expect([moved.code, moved.raw_log]).toEqual([0, ""]);
    await found(
      [
        `redelegate.delegator=${faucet}`,
        `redelegate.source_validator=${operator}`,
        `redelegate.destination_validator=${validator}`,
      ],
      moved.txhash,
    );
    const url = `${node.url("cometRpc")}/block_search?query=${encodeURIComponent(`"fee_burn.proposer_reward='0atoken' AND block.height=${moved.height}"`)}`;
    const { result } = (await (await fetch(url)).json()) as {
      result: { blocks: { block: { header: { height: string } } }[] };
    };
    expect(result.blocks.map(({ block }) => block.header.height)).toEqual([moved.height]);
  });
});
