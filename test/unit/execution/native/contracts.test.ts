/** Distribution, bank, slashing and bech32, called as clients and contracts call them. */
import { describe, expect, it } from "@jest/globals";
import type { Interface as EthersInterface } from "ethers";
import { parseAddress, toBech32, toChecksumAddress } from "../../../../chain/address.js";
import { validatorAddress } from "../../../../chain/consensus/validator-set.js";
import { signingKeyOf } from "../../../../chain/consensus/ed25519.js";
import { bytesToHex } from "../../../../chain/hex.js";
import type { JobResults } from "../../../../node/execution/calls/call-jobs.js";
import { communityPool, validatorRewards } from "../../../../node/modules/distribution/rewards.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import {
  accountOf,
  decodedLogs,
  operatorText,
  published,
  request,
} from "../../../helpers/chains/native-chain.js";
import { chainForTests, stakerAbi, to, TOKEN } from "./stakers-chain.js";

const NOTHING = "0x0000000000000000000000000000000000000000";
const PAGE = { key: "0x", offset: 0, limit: 0, countTotal: true, reverse: false };
const staking = published("IStaking");
const distribution = published("IDistribution");
const bank = published("IBank");
const slashing = published("ISlashing");
const bech32 = published("IBech32");
const native = chainForTests();
const { send, work, view } = native;

function reasonOf(abi: EthersInterface, result: JobResults["call"]): string {
  if (result.outcome !== "revert") return result.outcome;
  return String(abi.parseError(bytesToHex(result.returnData))?.args[0]);
}

describe("the distribution contract", () => {
  it("shows rewards, pays them, and sends them where the account chose", async () => {
    const [earned] = await view(distribution, "delegationRewards", accountOf(2), operatorText(0));
    const [[denom, amount, precision]] = earned;
    expect([denom, precision]).toEqual(["atoken", 18n]);
    const elsewhere = parseAddress(`0x${"0e".repeat(20)}`);
    const set = await send(
      to(distribution, "setWithdrawAddress", accountOf(2), toBech32(elsewhere)),
    );
    expect(set.events.find(({ type }) => type === "set_withdraw_address")?.values).toMatchObject({
      withdraw_address: toBech32(elsewhere),
    });
    expect(await view(distribution, "delegatorWithdrawAddress", accountOf(2))).toEqual([
      toBech32(elsewhere),
    ]);
    const sent = to(distribution, "withdrawDelegatorRewards", accountOf(2), operatorText(0));
    const { receipt } = await send(sent);
    const paid = native.chain.balance(elsewhere);
    expect(paid).toBeGreaterThan(amount / TOKEN);
    expect(decodedLogs(receipt.logs, [distribution])).toEqual([
      {
        name: "WithdrawDelegatorReward",
        values: {
          delegatorAddress: toChecksumAddress(accountOf(2)),
          validatorAddress: toChecksumAddress(accountOf(0)),
          amount: paid,
        },
      },
    ]);
    const blocked = to(
      distribution,
      "setWithdrawAddress",
      accountOf(2),
      toBech32(MODULE_ACCOUNTS.gov),
    );
    expect((await send(blocked)).receipt.status).toBe(0);
  });

  it("claims from all validators, as many as asked for", async () => {
    await send({ ...to(staking, "delegate", accountOf(3), operatorText(0), TOKEN), from: 3 });
    await send({ ...to(staking, "delegate", accountOf(3), operatorText(1), TOKEN), from: 3 });
    expect(await view(distribution, "delegatorValidators", accountOf(3))).toEqual([
      [operatorText(0), operatorText(1)],
    ]);
    const one = await send({ ...to(distribution, "claimRewards", accountOf(3), 1), from: 3 });
    expect(decodedLogs(one.receipt.logs, [distribution]).map(({ name }) => name)).toEqual([
      "WithdrawDelegatorReward",
      "ClaimRewards",
    ]);
    const [rewards, total] = await view(distribution, "delegationTotalRewards", accountOf(3));
    expect(rewards).toHaveLength(2);
    expect(total[0][1]).toBe(rewards[0][1][0][1] + rewards[1][1][0][1]);
    const all = await send({ ...to(distribution, "claimRewards", accountOf(3), 2), from: 3 });
    expect(all.changes.filter(({ reason }) => reason === "CLAIM")).toHaveLength(2);
    const tooMany = await send({ ...to(distribution, "claimRewards", accountOf(3), 101), from: 3 });
    expect(tooMany.receipt.status).toBe(0);
  });

  it("pays commission to the operator alone", async () => {
    const sent = to(distribution, "withdrawValidatorCommission", operatorText(0));
    expect((await send(sent)).receipt.status).toBe(0);
    const [[[, amount]]] = await view(distribution, "validatorCommission", operatorText(0));
    const { receipt, changes } = await send({ ...sent, from: 0 });
    expect(receipt.status).toBe(1);
    const claim = changes.find(({ reason }) => reason === "CLAIM");
    expect(claim?.to).toBe(accountOf(0));
    expect(claim?.amountAtoken).toBeGreaterThanOrEqual(amount / TOKEN);
    const info = await view(distribution, "validatorDistributionInfo", operatorText(0));
    expect(info[0][0]).toBe(toBech32(accountOf(0)));
  });

  it("takes gifts for the community and for a validator's delegators", async () => {
    const before = communityPool(native.chain.state());
    const coins = [["atoken", 3n * TOKEN]];
    const { events } = await send(to(distribution, "fundCommunityPool", accountOf(2), coins));
    expect(communityPool(native.chain.state())).toBe(before + 3n * TOKEN);
    expect(events.some(({ type }) => type === "coin_spent")).toBe(true);
    expect((await view(distribution, "communityPool"))[0][0][1]).toBe(
      (before + 3n * TOKEN) * TOKEN,
    );
    const validator = () => new Validators(native.chain.state()).of(accountOf(1));
    const was = validatorRewards(native.chain.state(), validator());
    const { own } = await native.chain.mine(
      to(distribution, "depositValidatorRewardsPool", accountOf(2), operatorText(1), coins),
    );
    const control =
      own?.journal.blockChanges.find(({ reason }) => reason === "MINT")?.amountAtoken ?? 0n;
    const now = validatorRewards(native.chain.state(), validator());
    const rose =
      now.delegatorsAtoken + now.commissionAtoken - was.delegatorsAtoken - was.commissionAtoken;
    expect(rose).toBeGreaterThanOrEqual(3n * TOKEN);
    expect(rose).toBeLessThan(3n * TOKEN + control);
    const foreign = to(distribution, "fundCommunityPool", accountOf(2), [["other", 1n]]);
    expect((await send(foreign)).receipt.status).toBe(0);
    expect(await view(distribution, "validatorSlashes", operatorText(0), 0, 1_000, PAGE)).toEqual([
      [],
      ["0x", 0n],
    ]);
    expect(
      (await view(distribution, "validatorOutstandingRewards", operatorText(1)))[0],
    ).toHaveLength(1);
  });
});

describe("views of staking and slashing", () => {
  it("page validators", async () => {
    const first = await view(staking, "validators", "BOND_STATUS_BONDED", { ...PAGE, limit: 1 });
    const [[[operator, key, jailed, status, tokens]], [nextKey, total]] = first;
    expect([operator, jailed, status, total]).toEqual([
      toChecksumAddress(accountOf(0)),
      false,
      3n,
      2n,
    ]);
    expect(Buffer.from(key, "base64")).toHaveLength(32);
    expect(tokens).toBeGreaterThan(100n * TOKEN);
    const second = await view(staking, "validators", "", { ...PAGE, key: nextKey, limit: 1 });
    expect(second[0][0][0]).toBe(toChecksumAddress(accountOf(1)));
    expect(second[1]).toEqual(["0x", 2n]);
    const reversed = await view(staking, "validators", "", { ...PAGE, reverse: true });
    expect(reversed[0].map((one: unknown[]) => one[0])).toEqual([
      toChecksumAddress(accountOf(1)),
      toChecksumAddress(accountOf(0)),
    ]);
    expect((await view(staking, "validator", accountOf(4)))[0][0]).toBe("");
    await expect(view(staking, "validators", "nonsense", PAGE)).rejects.toThrow(
      "invalid validator status",
    );
  });

  it("show what is on its way", async () => {
    await send(to(staking, "undelegate", accountOf(2), operatorText(0), TOKEN));
    await send(to(staking, "redelegate", accountOf(2), operatorText(0), operatorText(1), TOKEN));
    const [[delegator, validator, entries]] = await view(
      staking,
      "unbondingDelegation",
      accountOf(2),
      operatorText(0),
    );
    expect([delegator, validator]).toEqual([toBech32(accountOf(2)), operatorText(0)]);
    expect(entries.map((one: bigint[]) => [one[2], one[3]])).toEqual([[TOKEN, TOKEN]]);
    const route = [accountOf(2), operatorText(0), operatorText(1)] as const;
    const [redelegation] = await view(staking, "redelegation", ...route);
    expect(redelegation[3]).toHaveLength(1);
    for (const by of [route, [accountOf(2), "", ""], [NOTHING, operatorText(0), ""]]) {
      const [found] = await view(staking, "redelegations", ...by, PAGE);
      expect(found.map((one: unknown[][]) => one[0]?.[0])).toEqual([toBech32(accountOf(2))]);
      expect(found[0][1][0][1]).toBe(TOKEN);
    }
    await expect(
      view(staking, "redelegations", NOTHING, "", operatorText(1), PAGE),
    ).rejects.toThrow("at least a source validator");
  });

  it("know who signs", async () => {
    const [params] = await view(slashing, "getParams");
    expect(params).toEqual([
      native.chain.chain.genesis.modules?.slashing.signed_blocks_window,
      [TOKEN / 2n, 18n],
      600n,
      [TOKEN / 20n, 18n],
      [TOKEN / 100n, 18n],
    ]);
    const address = validatorAddress(signingKeyOf(Buffer.alloc(32, 1)).publicKey);
    await expect(view(slashing, "getSigningInfo", address)).rejects.toThrow(
      "SigningInfo not found",
    );
    expect(await view(slashing, "getSigningInfos", PAGE)).toEqual([[], ["0x", 0n]]);
    const { receipt } = await send({ ...to(slashing, "unjail", accountOf(0)), from: 0 });
    expect(receipt.status).toBe(0);
    const early = await work({
      kind: "call",
      request: request({ ...to(slashing, "unjail", accountOf(0)), from: 0 }),
    });
    expect(reasonOf(slashing.abi, early)).toContain("validator not jailed");
  });
});

describe("bank and bech32", () => {
  it("answer contracts and clients", async () => {
    const data = stakerAbi.encodeFunctionData("whoAmI");
    const result = await work({ kind: "call", request: request({ to: native.staker, data }) });
    if (result.outcome !== "success") throw new Error(result.outcome);
    const supply = native.chain.chain.stores.blocks.supply(
      native.chain.chain.view.head().height,
    )?.totalAtoken;
    expect(
      stakerAbi.decodeFunctionResult("whoAmI", bytesToHex(result.returnData)).toArray(),
    ).toEqual([toBech32(native.staker), toChecksumAddress(native.staker), 50n * TOKEN, supply]);
    const coin = `0x${"ee".repeat(20)}`;
    expect(await view(bank, "supplyOf", coin)).toEqual([supply]);
    expect(await view(bank, "supplyOf", native.staker)).toEqual([0n]);
    expect(await view(bank, "balances", parseAddress(`0x${"77".repeat(20)}`))).toEqual([[]]);
    expect(await view(bech32, "hexToBech32", accountOf(0), "addrvaloper")).toEqual([
      operatorText(0),
    ]);
    expect(await view(bech32, "bech32ToHex", operatorText(0))).toEqual([
      toChecksumAddress(accountOf(0)),
    ]);
    await expect(view(bech32, "bech32ToHex", "addr1qqq")).rejects.toThrow("invalid bech32 address");
    await expect(view(bech32, "hexToBech32", accountOf(0), " ")).rejects.toThrow("HRP");
  });
});
