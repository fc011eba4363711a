/**
 * Accounts of every kind as CosmJS reads them, lists of all, locked coins, and parameters by their old names.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { StargateClient } from "@cosmjs/stargate";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";

const DAY_MS = 86_400_000;
const nowMs = Date.now();
/** Half of its coins are locked for a year; they come free at the end. */
const cliff = `0x${"c1".repeat(20)}`;
/** All of its coins come free from a year ago to a year ahead. */
const slope = `0x${"c2".repeat(20)}`;
/** Two thirds of its coins are locked for a year; it is somebody's. */
const TOKEN = 10n ** 18n;
const holder = new Wallet(`0x${"c3".repeat(32)}`);
const bech32 = (address: string) => toBech32(parseAddress(address));

let node: StakedNode;
let client: StargateClient;

beforeAll(async () => {
  const account = { balanceAtoken: "1000", storage: {} };
  node = await StakedNode.start(
    {},
    {
      [cliff]: {
        ...account,
        vesting: { originalAtoken: "500", endTimeMs: nowMs + 365 * DAY_MS },
      },
      [slope]: {
        ...account,
        vesting: {
          originalAtoken: "1000",
          startTimeMs: nowMs - 365 * DAY_MS,
          endTimeMs: nowMs + 365 * DAY_MS,
        },
      },
      [holder.address.toLowerCase()]: {
        balanceAtoken: `${3n * TOKEN}`,
        storage: {},
        vesting: { originalAtoken: `${2n * TOKEN}`, endTimeMs: nowMs + 365 * DAY_MS },
      },
    },
  );
  client = await StargateClient.connect(node.url("cometRpc"));
});

afterAll(async () => {
  client?.disconnect();
  await node?.close();
});

async function get(route: string, height?: number) {
  const { status, body } = await node.get(route, height);
  expect([route, status]).toEqual([route, 200]);
  return body as Record<string, never>;
}

describe("accounts with locked coins", () => {
  it("are read by CosmJS and shown by REST with what they hold and can spend", async () => {
    for (const address of [cliff, slope]) {
      expect(await client.getAccount(bech32(address))).toMatchObject({ sequence: 0 });
      expect(await client.getBalance(bech32(address), "atoken")).toMatchObject({ amount: "1000" });
    }
    const bank = "/cosmos/bank/v1beta1/spendable_balances";
    expect(await get(`${bank}/${bech32(cliff)}`)).toMatchObject({
      balances: [{ denom: "atoken", amount: "500" }],
    });
    const half = await get(`${bank}/${bech32(slope)}/by_denom?denom=atoken`);
    // Rounded down, and time has gone on since the test began.
    expect(half).toMatchObject({ balance: { amount: expect.stringMatching(/^(499|500)$/) } });
    const { account } = await get(`/cosmos/auth/v1beta1/accounts/${bech32(cliff)}`);
    expect(account).toEqual({
      "@type": "/cosmos.vesting.v1beta1.DelayedVestingAccount",
      base_vesting_account: {
        base_account: {
          address: bech32(cliff),
          pub_key: null,
          account_number: "0",
          sequence: "0",
        },
        original_vesting: [{ denom: "atoken", amount: "500" }],
        delegated_free: [],
        delegated_vesting: [],
        end_time: `${Math.ceil((nowMs + 365 * DAY_MS) / 1_000)}`,
      },
    });
    const sloped = await get(`/cosmos/auth/v1beta1/accounts/${bech32(slope)}`);
    expect(sloped).toMatchObject({
      account: {
        "@type": "/cosmos.vesting.v1beta1.ContinuousVestingAccount",
        start_time: `${Math.ceil((nowMs - 365 * DAY_MS) / 1_000)}`,
      },
    });
  });

  it("are left out of the circulating supply, at every height", async () => {
    const height = await node.height();
    const supply = await get("/causeway/supply/v1", height);
    const { total, burned, locked, circulating } = supply as Record<string, string>;
    expect(supply).toMatchObject({ height: `${height}` });
    const others = BigInt(locked ?? "") - 2n * TOKEN;
    expect([1000n, 1001n]).toContain(others);
    expect(BigInt(circulating ?? "")).toBe(
      BigInt(total ?? "") - BigInt(burned ?? "") - BigInt(locked ?? ""),
    );
    const { out } = await node.run("query", "supply", "--height", `${height}`, "--output", "json");
    expect(JSON.parse(out)).toEqual(supply);
  });

  it("can delegate them, and send none of them", async () => {
    const { validators } = (await get("/cosmos/staking/v1beta1/validators")) as unknown as {
      validators: { operator_address: string }[];
    };
    const from = ["--from", node.write("holder.key", holder.privateKey)];
    const operator = validators[0]?.operator_address ?? "";
    const stake = (TOKEN * 5n) / 2n;
    const sent = await node.tx("bank", "send", bech32(slope), `${TOKEN}atoken`, ...from);
    expect(sent).toMatchObject({ code: 5, codespace: "sdk" });
    const words = ["staking", "delegate", operator, `${stake}atoken`, ...from];
    expect(await node.tx(...words)).toMatchObject({ code: 0, raw_log: "" });
    const route = `/cosmos/auth/v1beta1/accounts/${bech32(holder.address)}`;
    expect(await get(route)).toMatchObject({
      account: {
        base_vesting_account: {
          delegated_vesting: [{ denom: "atoken", amount: `${2n * TOKEN}` }],
          delegated_free: [{ denom: "atoken", amount: `${stake - 2n * TOKEN}` }],
        },
      },
    });
  });
});

describe("lists of all", () => {
  type Page = { accounts: { "@type": string }[]; pagination: { next_key: string | null } };

  it("are not there for a message that carries more than what is free", async () => {
    // So that who builds a transaction learns before it is signed whether it can be paid.
    const rpc = createJsonRpcClient({ url: node.url("jsonRpc") });
    const evm = createEvmClient(rpc);
    const from = parseAddress(cliff);
    const { signal } = new AbortController();
    const carry = (valueAtoken: bigint) =>
      evm.call({ from, to: from, gas: 21_000n, valueAtoken }, "latest", { signal });
    try {
      expect(await carry(500n)).toBe("0x");
      await expect(carry(501n)).rejects.toThrow(/insufficient funds .* have 500 want 501/);
    } finally {
      rpc.close();
    }
  });

  it("accounts go page by page, each once, the chain's own by their names", async () => {
    const route = "/cosmos/auth/v1beta1/accounts";
    const whole = (await get(`${route}?pagination.count_total=true`)) as unknown as Page & {
      pagination: { total: string };
    };
    expect(whole.pagination.total).toBe(`${whole.accounts.length}`);
    const pages: unknown[] = [];
    let key: string | null = "";
    while (key !== null) {
      const parameter: string = key === "" ? "" : `&pagination.key=${encodeURIComponent(key)}`;
      const page = (await get(`${route}?pagination.limit=2${parameter}`)) as unknown as Page;
      expect(page.accounts.length).toBeLessThanOrEqual(2);
      pages.push(...page.accounts);
      key = page.pagination.next_key;
    }
    expect(pages).toHaveLength(whole.accounts.length);
    const names = whole.accounts.flatMap((one) => ("name" in one ? [one.name] : []));
    expect(names).toEqual(expect.arrayContaining(["bonded_tokens_pool", "fee_collector"]));
    const gov = await get("/cosmos/auth/v1beta1/module_accounts/gov");
    expect(gov).toMatchObject({
      account: { name: "gov", base_account: { address: bech32(`0x${"00".repeat(18)}0805`) } },
    });
    // Read before: the chain may make a block between the two answers.
    const height = await node.height();
    const old = await node.get(route, 1);
    expect(old.status === 400 || height <= 3).toBe(true);
  });

  it("owners of the token hold the supply together", async () => {
    const height = await node.height();
    const owners = (await get("/cosmos/bank/v1beta1/denom_owners/atoken", height)) as unknown as {
      denom_owners: { address: string; balance: { amount: string } }[];
    };
    const supply = (await get("/cosmos/bank/v1beta1/supply/atoken", height)) as unknown as {
      amount: { amount: string };
    };
    const sum = owners.denom_owners.reduce((all, { balance }) => all + BigInt(balance.amount), 0n);
    expect(sum.toString()).toBe(supply.amount.amount);
  });

  it("parameters are found by the names of older releases", async () => {
    const route = "/cosmos/params/v1beta1";
    const { subspaces } = (await get(`${route}/subspaces`)) as unknown as {
      subspaces: { subspace: string; keys: string[] }[];
    };
    for (const { subspace, keys } of subspaces) {
      for (const key of keys) {
        const { param } = await get(`${route}/params?subspace=${subspace}&key=${key}`);
        expect(param).toEqual({ subspace, key, value: expect.any(String) });
      }
    }
    const one = await get(`${route}/params?subspace=staking&key=UnbondingTime`);
    expect(one).toMatchObject({ param: { value: `"${21n * 86_400n * 10n ** 9n}"` } });
    const wrong = await node.get(`${route}/params?subspace=toString&key=length`);
    expect(wrong.status).toBe(404);
  });
});
