/** An unmodified CosmJS wallet pays into a kit: credited to the last atoken, and found by everybody. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JsonRpcProvider, Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import { callApi, kitOffset, type RunningKit, runCauseway, startKit } from "../helpers/kit.js";
import { until } from "../helpers/until.js";

const SCRIPT = fileURLToPath(new URL("../helpers/cosmos/cosmjs-client.mjs", import.meta.url));
const PAID = { fee: "1750", gas: "70000", memo: "a deposit" };

interface WalletAnswer {
  readonly address: string;
  readonly results: readonly {
    readonly code: number;
    readonly height?: number;
    readonly hash?: string;
    readonly used?: number;
    readonly types?: readonly string[];
    readonly foundAt?: number;
    readonly log?: string;
  }[];
  readonly found: readonly (readonly string[])[];
  readonly sequence: number;
}

let kit: RunningKit;
let deposit: { readonly address: string; readonly bech32: string };

/** Runs the wallet in a process of its own: Jest cannot load CosmJS. */
function wallet(input: {
  readonly sends: readonly object[];
  readonly queries: readonly string[];
}): Promise<WalletAnswer> {
  const request = { url: kit.url("cometRpc"), key: kit.key("faucet.key").slice(2), ...input };
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, ["--no-warnings", SCRIPT], (error, output) => {
      if (error === null) resolve(JSON.parse(output));
      else reject(error);
    });
    child.stdin?.end(JSON.stringify(request));
  });
}

beforeAll(async () => {
  // The first block is proven at the end, however long a busy machine takes to come to that.
  const env = { CAUSEWAY_APP_PRUNING: "nothing" };
  kit = await startKit({ portOffset: kitOffset(0), env });
  const body = { customerId: "cosmonaut" };
  const made = await callApi(kit, "depositApi", { path: "/v1/addresses", body });
  deposit = made.body as unknown as typeof deposit;
});

afterAll(async () => {
  await kit?.stop();
  kit?.remove();
});

describe("a CosmJS wallet", () => {
  it("pays a deposit that is credited once, and shares its nonces with Ethereum's wallets", async () => {
    const amount = "5000000000000000001";
    const recipient = `transfer.recipient='${deposit.bech32}' AND message.module='bank'`;
    const answer = await wallet({
      sends: [
        { to: deposit.bech32, amount, ...PAID },
        { to: deposit.bech32, amount, ...PAID, fee: "1749" },
        { to: deposit.bech32, amount: `${10n ** 40n}`, ...PAID },
      ],
      queries: [recipient, `transfer.amount='${amount}atoken'`],
    });
    const [paid, cheap, rich] = answer.results;
    expect(paid).toMatchObject({ code: 0, foundAt: paid?.height });
    expect(paid?.types).toEqual(expect.arrayContaining(["coin_spent", "transfer", "tx"]));
    expect(Math.round((paid?.used ?? 0) / 5_000)).toBe(13);
    expect(cheap?.log).toContain("required: 1750atoken: insufficient fee");
    expect(rich?.log).toContain("insufficient funds");
    expect(answer.found).toEqual([[paid?.hash], [paid?.hash]]);
    expect(answer.sequence).toBe(1);
    const path = `/v1/deposits?address=${deposit.address}`;
    const rows = async () =>
      (await callApi(kit, "depositApi", { path })).body["deposits"] as { status: string }[];
    await until(async () => (await rows())[0]?.status === "credited", { timeoutMs: 60_000 });
    const hash = `0x${paid?.hash?.toLowerCase()}`;
    expect(await rows()).toEqual([
      expect.objectContaining({ amountAtoken: amount, txHash: hash, blockNumber: paid?.height }),
    ]);
    const provider = new JsonRpcProvider(kit.url("jsonRpc"));
    const faucet = new Wallet(kit.key("faucet.key"), provider);
    expect(await provider.getTransactionCount(faucet.address)).toBe(1);
    expect((await provider.getBlock(paid?.height ?? 0))?.transactions).toEqual([]);
    expect(await provider.getTransaction(hash)).toBeNull();
    const sent = await faucet.sendTransaction({ to: deposit.address, value: 3n });
    expect((await sent.wait())?.status).toBe(1);
    const next = await wallet({
      sends: [{ to: answer.address, amount: "1", ...PAID }],
      queries: [],
    });
    expect([next.results[0]?.code, next.sequence]).toEqual([0, 3]);
    provider.destroy();
  });

  it("delegates to the kit's own validator and takes its rewards", async () => {
    const operator = new Wallet(kit.key("operator.key"));
    const validatorAddress = toBech32(parseAddress(operator.address), VALIDATOR_PREFIX);
    const delegatorAddress = toBech32(parseAddress(new Wallet(kit.key("faucet.key")).address));
    const stake = { denom: "atoken", amount: `${7n * 10n ** 18n}` };
    const of = (module: string, name: string, value: object) => ({
      typeUrl: `/cosmos.${module}.v1beta1.${name}`,
      value: { delegatorAddress, validatorAddress, ...value },
    });
    const dear = { fee: "20000", gas: "800000", memo: "" };
    const answer = await wallet({
      sends: [
        { ...dear, messages: [of("staking", "MsgDelegate", { amount: stake })] },
        { ...dear, messages: [of("distribution", "MsgWithdrawDelegatorReward", {})] },
        { ...dear, messages: [of("staking", "MsgUndelegate", { amount: stake })] },
      ],
      queries: [`delegate.validator='${validatorAddress}'`, "fee_burn.burned='10000atoken'"],
    });
    expect(answer.results.map(({ code }) => code)).toEqual([0, 0, 0]);
    const hashes = answer.results.map(({ hash }) => hash);
    expect(answer.found).toEqual([[hashes[0]], hashes]);
    const types = answer.results.map((one) => one.types ?? []);
    expect(types[0]).toEqual(expect.arrayContaining(["delegate", "fee_burn", "transfer"]));
    expect(types[1]).toEqual(expect.arrayContaining(["withdraw_rewards"]));
    expect(types[2]).toEqual(expect.arrayContaining(["unbond", "withdraw_rewards"]));
  });

  it("leaves books, Data API and an independent execution without a difference", async () => {
    for (const command of [["reconcile"], ["mesh-check"], ["audit", "execution"]]) {
      const { code, stdout, stderr } = await runCauseway(kit, command);
      expect([command, code, code === 0 ? "" : stdout + stderr]).toEqual([command, 0, ""]);
    }
  });
});
