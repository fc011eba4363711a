/** The staking contract: what it does for accounts and contracts, and what undoes it. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AbiCoder, Interface } from "ethers";
import { type Address, toBech32, toChecksumAddress } from "../../../../chain/address.js";
import { bytesToHex } from "../../../../chain/hex.js";
import type { Receipt } from "../../../../chain/receipt.js";
import { Delegations } from "../../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import {
  accountOf,
  decodedLogs,
  NativeChain,
  operatorText,
  published,
  request,
  type Sent,
} from "../../../helpers/chains/native-chain.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { SMALL_ORDER } from "../../../helpers/keys/small-order.js";

const TOKEN = 10n ** 18n;
const staking = published("IStaking");
const distribution = published("IDistribution");
const compiled = compileFixture("NativeCallers.sol");
const { Staker, Mirror } = compiled;
if (Staker === undefined || Mirror === undefined) throw new Error("not compiled");
const stakerAbi = new Interface(Staker.abi);

let chain: NativeChain;
let staker: Address;
let mirror: Address;

beforeAll(async () => {
  chain = await NativeChain.open();
  staker = await chain.deploy(Staker.bytecode, { value: 100n * TOKEN });
  mirror = await chain.deploy(Mirror.bytecode);
});

afterAll(() => chain.close());

/** Both engines came to the same. */
async function send(sent: Sent) {
  const result = await chain.send(sent);
  expect(result.library).toEqual(result.own);
  return result;
}

const call = (name: string, ...args: unknown[]): Sent => ({
  to: staking.address,
  data: staking.abi.encodeFunctionData(name, args),
});
const toStaker = (name: string, ...args: unknown[]): Sent => ({
  to: staker,
  data: stakerAbi.encodeFunctionData(name, args),
});

/** What a caller contract heard of the call that it made. */
function outcomeOf({ logs }: Receipt): { ok: boolean; reason: string; data: string } {
  for (const log of logs) {
    const parsed = stakerAbi.parseLog({ topics: [...log.topics], data: bytesToHex(log.data) });
    if (parsed?.name !== "Outcome") continue;
    const { ok, data } = parsed.args;
    const isError = data.startsWith("0x08c379a0");
    const [reason] = isError
      ? AbiCoder.defaultAbiCoder().decode(["string"], `0x${data.slice(10)}`)
      : [""];
    return { ok, reason, data };
  }
  throw new Error("no outcome");
}

/** Shares of an account with the first validator, as atoken. */
function stakeOf(account: Address, validator = 0): bigint {
  return new Delegations(chain.state()).shares(accountOf(validator), account) / TOKEN;
}

/** Roots of the modules' storage. */
function moduleRoots(): string[] {
  return [MODULE_ACCOUNTS.staking, MODULE_ACCOUNTS.slashing].map(
    (address) => chain.state().accountNow(address)?.storageRoot ?? "",
  );
}

describe("an account that calls the staking contract", () => {
  it("delegates: coins, journal, log and events", async () => {
    const before = chain.balance(accountOf(2));
    const pool = chain.balance(MODULE_ACCOUNTS.staking);
    const { receipt, changes, events } = await send(
      call("delegate", accountOf(2), operatorText(0), 7n * TOKEN + 5n),
    );
    expect(receipt.status).toBe(1);
    const fee = receipt.gasUsed * receipt.effectiveGasPriceAtoken;
    expect(chain.balance(accountOf(2))).toBe(before - fee - 7n * TOKEN - 5n);
    expect(chain.balance(MODULE_ACCOUNTS.staking)).toBe(pool + 7n * TOKEN + 5n);
    expect(
      changes.map(({ reason, tracePath, amountAtoken }) => [reason, tracePath, amountAtoken]),
    ).toEqual([
      ["FEE", undefined, fee],
      ["CALL", "", 0n],
      ["DELEGATE", "", 7n * TOKEN + 5n],
    ]);
    expect(decodedLogs(receipt.logs, [staking, distribution])).toEqual([
      {
        name: "Delegate",
        values: {
          delegatorAddress: toChecksumAddress(accountOf(2)),
          validatorAddress: toChecksumAddress(accountOf(0)),
          amount: 7n * TOKEN + 5n,
          newShares: (7n * TOKEN + 5n) * TOKEN,
        },
      },
    ]);
    expect(events.find(({ type }) => type === "delegate")?.values).toEqual({
      delegator: toBech32(accountOf(2)),
      validator: operatorText(0),
      amount: `${7n * TOKEN + 5n}atoken`,
      new_shares: `${7n * TOKEN + 5n}.000000000000000000`,
      msg_index: "0",
    });
    expect(events.some(({ values }) => values["module"] === "staking")).toBe(true);
  });

  it("gets its rewards with the next change, and its stake back when the time is over", async () => {
    const { receipt, events } = await send(
      call("undelegate", accountOf(2), operatorText(0), TOKEN),
    );
    expect(receipt.status).toBe(1);
    const [reward, unbond] = decodedLogs(receipt.logs, [staking, distribution]);
    expect(reward?.name).toBe("WithdrawDelegatorReward");
    expect(reward?.values["amount"]).toBeGreaterThan(0n);
    expect(unbond).toMatchObject({ name: "Unbond", values: { amount: TOKEN } });
    const unbonding = events.find(({ type }) => type === "unbond");
    const seconds = Date.parse(unbonding?.values["completion_time"] ?? "") / 1_000;
    expect(unbond?.values["completionTime"]).toBe(BigInt(seconds));
    const height = chain.chain.view.head().height;
    const cancelled = await send(
      call("cancelUnbondingDelegation", accountOf(2), operatorText(0), TOKEN / 2n, height),
    );
    expect(cancelled.receipt.status).toBe(1);
    expect(stakeOf(accountOf(2))).toBe(6n * TOKEN + 5n + TOKEN / 2n);
    const moved = await send(
      call("redelegate", accountOf(2), operatorText(0), operatorText(1), TOKEN),
    );
    expect(moved.receipt.status).toBe(1);
    expect(decodedLogs(moved.receipt.logs, [staking]).map(({ name }) => name)).toEqual([
      "Redelegate",
    ]);
    expect(moved.events.find(({ type }) => type === "redelegate")?.values).toMatchObject({
      source_validator: operatorText(0),
      destination_validator: operatorText(1),
      amount: `${TOKEN}atoken`,
    });
  });

  it("is refused in words what is not its own, unknown, too much or with coins", async () => {
    const other = await send(call("delegate", accountOf(3), operatorText(0), 1n));
    expect(other.receipt).toMatchObject({ status: 0, logs: [] });
    expect(other.receipt.gasUsed).toBeLessThan(60_000n);
    const much = await send(call("delegate", accountOf(2), operatorText(0), 10n ** 30n));
    expect(much.receipt.status).toBe(0);
    expect(much.changes.some(({ effective, reason }) => effective && reason === "DELEGATE")).toBe(
      false,
    );
    const paid = await send({ ...call("delegate", accountOf(2), operatorText(0), 1n), value: 5n });
    expect(paid.receipt.status).toBe(0);
    const plain = await send({ to: staking.address, value: 5n });
    expect(plain.receipt.status).toBe(0);
    expect((await send({ to: staking.address, data: "0x12345678" })).receipt.status).toBe(0);
    const reserved = await send({ to: `0x${"802".padStart(40, "0")}`, value: 5n });
    expect(reserved.receipt.status).toBe(0);
  });

  it("edits nobody to what no validator can be, and says that first, as x/staking does", async () => {
    const { address, abi } = staking;
    const reasonOf = async (...args: readonly unknown[]) => {
      const data = abi.encodeFunctionData("editValidator", args);
      const asked = request({ to: address, data, from: 2 });
      const result = await chain.work({ kind: "call", request: asked });
      const reason = result.outcome === "revert" ? bytesToHex(result.returnData) : "0x";
      return String(abi.parseError(reason)?.args[0]);
    };
    const words = ["me", "", "", "", ""];
    const nothing = ["", "", "", "", ""];
    const [nobody, asBefore] = [accountOf(2), -1n];
    expect(await reasonOf(nothing, nobody, asBefore, asBefore)).toContain("empty description");
    expect(await reasonOf(words, nobody, TOKEN + 1n, asBefore)).toContain("between 0 and 1");
    expect(await reasonOf(words, nobody, asBefore, 0n)).toContain("must be a positive integer");
    expect(await reasonOf(words, nobody, asBefore, asBefore)).toContain("validator does not exist");
  });

  it("registers no validator whose key everybody can sign with", async () => {
    const rates = [TOKEN / 10n, TOKEN / 5n, TOKEN / 100n];
    for (const key of SMALL_ORDER) {
      const text = Buffer.from(key).toString("base64");
      const args = [["me", "", "", "", ""], rates, 1n, accountOf(3), text, 20n * TOKEN];
      const { receipt } = await send({ ...call("createValidator", ...args), from: 3 });
      expect([text, receipt.status]).toEqual([text, 0]);
      const { address, abi } = staking;
      const data = abi.encodeFunctionData("createValidator", args);
      const asked = request({ to: address, data, from: 3 });
      const result = await chain.work({ kind: "call", request: asked });
      const reason = result.outcome === "revert" ? bytesToHex(result.returnData) : "0x";
      expect(abi.parseError(reason)?.args[0]).toContain("validator pubkey type is not supported");
    }
  });

  it("registers a validator, whose fee is burned, and edits it", async () => {
    const key = Buffer.alloc(32, 0x77).toString("base64");
    const description = ["me", "", "", "", ""];
    const rates = [TOKEN / 10n, TOKEN / 5n, TOKEN / 100n];
    const { receipt, changes, events } = await send({
      ...call("createValidator", description, rates, 1n, accountOf(3), key, 20n * TOKEN),
      from: 3,
    });
    expect(receipt.status).toBe(1);
    expect(changes.map(({ reason }) => reason)).toEqual([
      "FEE",
      "CALL",
      "REGISTER_BURN",
      "DELEGATE",
    ]);
    expect(decodedLogs(receipt.logs, [staking]).map(({ name }) => name)).toContain(
      "CreateValidator",
    );
    expect(events.find(({ type }) => type === "register_validator")?.values).toEqual({
      validator: operatorText(3),
      burn_amount: `${TOKEN}atoken`,
      self_delegation: `${20n * TOKEN}atoken`,
      msg_index: "0",
    });
    const texts = ["[do-not-modify]", "", "https://example.org", "", ""];
    const edited = await send({
      ...call("editValidator", texts, accountOf(3), -1, 5n * TOKEN),
      from: 3,
    });
    expect(edited.receipt.status).toBe(1);
    expect(decodedLogs(edited.receipt.logs, [staking])[0]?.values).toEqual({
      validatorAddress: toChecksumAddress(accountOf(3)),
      commissionRate: TOKEN / 10n,
      minSelfDelegation: 5n * TOKEN,
    });
  });
});

describe("a contract that calls the staking contract", () => {
  it("delegates its own coins and sees them gone at once", async () => {
    const before = chain.balance(staker);
    const { receipt, changes } = await send(toStaker("stake", operatorText(0), 10n * TOKEN));
    expect(receipt.status).toBe(1);
    expect(
      stakerAbi
        .parseLog({
          topics: [...(receipt.logs[1]?.topics ?? [])],
          data: bytesToHex(receipt.logs[1]?.data ?? new Uint8Array(0)),
        })
        ?.args.toArray(),
    ).toEqual([before - 10n * TOKEN, 10n * TOKEN]);
    expect(changes.at(-1)).toMatchObject({
      reason: "DELEGATE",
      tracePath: "0",
      from: staker,
      to: MODULE_ACCOUNTS.staking,
      effective: true,
    });
  });

  it("leaves nothing where an outer frame reverts, runs out of gas or catches", async () => {
    const roots = moduleRoots();
    const before = chain.balance(staker);
    const counter = async () => chain.state().storageNow(staker, `0x${"0".repeat(64)}` as never);
    const count = await counter();
    for (const [name, gas] of [
      ["stakeAndRevert", 2_000_000n],
      ["stakeAndBurnGas", 1_000_000n],
    ] as const) {
      const direct = await send({ ...toStaker(name, operatorText(0), TOKEN), gasLimit: gas });
      expect(direct.receipt).toMatchObject({ status: 0, logs: [] });
      expect(direct.events.some(({ type }) => type === "delegate")).toBe(false);
      expect(
        direct.changes.filter(({ effective }) => effective).map(({ reason }) => reason),
      ).toEqual(["FEE"]);
      expect(direct.changes.filter(({ reason }) => reason === "DELEGATE")).toHaveLength(1);
      const inner = stakerAbi.encodeFunctionData(name, [operatorText(0), TOKEN]);
      const caught = await send(toStaker("tryStake", inner, gas));
      expect(caught.receipt.status).toBe(1);
      expect(outcomeOf(caught.receipt).ok).toBe(false);
      expect(
        caught.events.some(({ type }) => type === "delegate" || type === "withdraw_rewards"),
      ).toBe(false);
      expect(caught.receipt.logs).toHaveLength(1);
    }
    expect(moduleRoots()).toEqual(roots);
    expect(chain.balance(staker)).toBe(before);
    expect(await counter()).toEqual(count);
  });

  it("moves coins before and after, and every balance is exact", async () => {
    const before = chain.balance(staker);
    const { receipt, changes } = await send({
      ...toStaker("around", mirror, operatorText(0), 4n * TOKEN),
      value: TOKEN,
    });
    expect(receipt.status).toBe(1);
    const paid = changes.filter(({ reason, effective }) => reason === "CLAIM" && effective);
    const claimed = paid.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
    expect(claimed).toBeGreaterThan(0n);
    expect(chain.balance(mirror)).toBe(3n * TOKEN);
    expect(chain.balance(staker)).toBe(before + TOKEN - 4n * TOKEN - 3n * TOKEN + claimed);
    expect(stakeOf(staker)).toBe(14n * TOKEN);
  });

  it("claims in a nested call; rewards go where it chose", async () => {
    const before = chain.balance(staker);
    const { receipt, changes, events } = await send(toStaker("claimNested", 3));
    expect(receipt.status).toBe(1);
    const claim = changes.find(({ reason }) => reason === "CLAIM");
    expect(claim).toMatchObject({ to: staker, tracePath: "0_0_0_0" });
    expect(chain.balance(staker)).toBe(before + (claim?.amountAtoken ?? 0n));
    const names = decodedLogs(receipt.logs, [distribution]).map(({ name }) => name);
    expect(names).toEqual(["WithdrawDelegatorReward", "ClaimRewards"]);
    expect(events.find(({ type }) => type === "withdraw_rewards")?.values).toMatchObject({
      delegator: toBech32(staker),
      validator: operatorText(0),
      amount: `${claim?.amountAtoken}atoken`,
    });
  });

  it("cannot act for another, change the state by STATICCALL, or lend it its account", async () => {
    const roots = moduleRoots();
    const data = staking.abi.encodeFunctionData("delegate", [staker, operatorText(0), TOKEN]);
    const forOther = await send(toStaker("stakeFor", accountOf(2), operatorText(0), 1n));
    expect(forOther.receipt.status).toBe(0);
    const statically = outcomeOf((await send(toStaker("viaStaticcall", data))).receipt);
    expect(statically).toEqual({ ok: false, reason: "", data: "0x" });
    for (const name of ["viaDelegatecall", "viaCallcode"]) {
      const delegated = outcomeOf((await send(toStaker(name, data))).receipt);
      expect(delegated.ok).toBe(false);
      expect(delegated.reason).toContain("call it directly");
    }
    const before = chain.balance(staker);
    const paid = outcomeOf((await send(toStaker("withValue", data))).receipt);
    expect(paid.reason).toContain("takes no coins");
    expect(chain.balance(staker)).toBe(before);
    const view = staking.abi.encodeFunctionData("delegation", [staker, operatorText(0)]);
    const seen = outcomeOf((await send(toStaker("viaStaticcall", view))).receipt);
    expect(staking.abi.decodeFunctionResult("delegation", seen.data).toArray(true)).toEqual([
      14n * TOKEN * TOKEN,
      ["atoken", 14n * TOKEN],
    ]);
    const description = [
      ["x", "", "", "", ""],
      [0n, 0n, 0n],
      1n,
      staker,
      Buffer.alloc(32, 9).toString("base64"),
      TOKEN,
    ];
    const registering = staking.abi.encodeFunctionData("createValidator", description);
    const registered = outcomeOf(
      (await send(toStaker("withGas", registering, 2_000_000n))).receipt,
    );
    expect(registered.reason).toContain("not from a smart contract");
    expect(moduleRoots()).toEqual(roots);
  });

  it("runs out of gas inside at any point, and nothing stays", async () => {
    const data = staking.abi.encodeFunctionData("delegate", [staker, operatorText(1), TOKEN]);
    const roots = moduleRoots();
    let needed = 0n;
    for (let gas = 2_000n; gas < 400_000n; gas += 13_337n) {
      const { receipt, events } = await send(toStaker("withGas", data, gas));
      const { ok } = outcomeOf(receipt);
      if (ok) {
        needed = gas;
        break;
      }
      expect([gas, moduleRoots()]).toEqual([gas, roots]);
      expect(events.some(({ type }) => type === "delegate")).toBe(false);
    }
    expect(needed).toBeGreaterThan(100_000n);
    expect(stakeOf(staker, 1)).toBe(TOKEN);
  });

  it("reads bank and bech32", async () => {
    const { stores, view } = chain.chain;
    const supply = stores.blocks.supply(view.head().height)?.totalAtoken;
    const { own, library } = await chain.mine({ to: staker, data: "0x" });
    expect(library).toEqual(own);
    expect(supply).toBeGreaterThan(0n);
  });
});

describe("stake at a second validator that owes the slash of the first one", () => {
  /** All that is shown is asked for, once the fault of before has a proof. */
  async function leave(appVersion: 1 | 2) {
    const own = await NativeChain.open({}, appVersion);
    try {
      await own.send(call("delegate", accountOf(2), operatorText(0), 10n * TOKEN));
      await own.send(
        call("redelegate", accountOf(2), operatorText(0), operatorText(1), 10n * TOKEN),
      );
      const { consensusAddress } = new Validators(own.state()).of(accountOf(0));
      const { height } = own.chain.view.head();
      const fault = { consensusAddress, height: height - 1, power: 100n };
      await own.chain.mine([], [], { votes: [], misbehavior: [fault] });
      const view = [accountOf(2), operatorText(1)];
      const [, [, shown]] = await own.view(staking, "delegation", view);
      const ask = (amount: bigint) => call("undelegate", accountOf(2), operatorText(1), amount);
      const much = await own.send(ask(shown + 2n));
      expect(much.receipt.status).toBe(0);
      const result = await own.send(ask(shown));
      expect(result.library).toEqual(result.own);
      const logs = decodedLogs(result.receipt.logs, [staking]);
      return { shown, status: result.receipt.status, amount: logs[0]?.values["amount"] };
    } finally {
      await own.close();
    }
  }

  it("leaves with what is left, which the log tells, from version 2 of the rules on", async () => {
    const amount = (10n * TOKEN * 95n) / 100n;
    expect(await leave(2)).toEqual({ shown: 10n * TOKEN, status: 1, amount });
    expect(await leave(1)).toEqual({ shown: 10n * TOKEN, status: 0, amount: undefined });
  });
});

describe("gas of refused calls, by the first rules", () => {
  it("is what the release before had: what they read before they were refused is in it", async () => {
    const own = await NativeChain.open({}, 1);
    const key = Buffer.alloc(32, 0x77).toString("base64");
    const words = ["me", "", "", "", ""];
    const register = (rates: readonly bigint[]) =>
      call("createValidator", words, rates, 1n, accountOf(3), key, 20n * TOKEN);
    const edit = (rate: bigint) => call("editValidator", words, accountOf(3), rate, -1n);
    const [tenth, fifth] = [TOKEN / 10n, TOKEN / 5n];
    const gasOf = async (sent: Sent) => {
      const { receipt, library, own: ours } = await own.send({ ...sent, from: 3 });
      expect(library).toEqual(ours);
      return [receipt.status, receipt.gasUsed];
    };
    try {
      expect([
        await gasOf(register([tenth, TOKEN + 1n, tenth])),
        await gasOf(register([fifth, tenth, tenth])),
        await gasOf(register([tenth, fifth, TOKEN])),
        await gasOf(register([0n, fifth, tenth])),
        await gasOf(edit(fifth)),
        // As the release before the order was changed made them.
      ]).toEqual([
        [0, 40_378n],
        [0, 40_366n],
        [0, 40_366n],
        [1, 590_481n],
        [0, 51_608n],
      ]);
    } finally {
      await own.close();
    }
  });
});
