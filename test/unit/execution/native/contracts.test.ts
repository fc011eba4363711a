/** Distribution, bank, slashing, bech32 and p256, called as clients and contracts call them. */
import { createSign, generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface, type Interface as EthersInterface } from "ethers";
import {
  type Address,
  parseAddress,
  toBech32,
  toChecksumAddress,
} from "../../../../chain/address.js";
import { verifyP256 } from "../../../../chain/crypto.js";
import { sha256 } from "../../../../chain/hashes.js";
import { validatorAddress } from "../../../../chain/consensus/validator-set.js";
import { signingKeyOf } from "../../../../chain/consensus/ed25519.js";
import { bytesToBigint, bytesToHex, hexToBytes, parseHexBytes } from "../../../../chain/hex.js";
import type { JobResults } from "../../../../node/execution/calls/call-jobs.js";
import type { JobWork } from "../../../../node/execution/calls/call-protocol.js";
import { communityPool, validatorRewards } from "../../../../node/modules/distribution/rewards.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { addressWord, mapSlot, MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import { FIRST_APP_VERSION } from "../../../../node/settings/app-version.js";
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

const TOKEN = 10n ** 18n;
const NOTHING = "0x0000000000000000000000000000000000000000";
const PAGE = { key: "0x", offset: 0, limit: 0, countTotal: true, reverse: false };
const staking = published("IStaking");
const distribution = published("IDistribution");
const bank = published("IBank");
const slashing = published("ISlashing");
const bech32 = published("IBech32");
type Published = typeof staking;
const P256 = parseAddress(`0x${"100".padStart(40, "0")}`);
const { Staker } = compileFixture("NativeCallers.sol");
if (Staker === undefined) throw new Error("not compiled");
const stakerAbi = new Interface(Staker.abi);

let chain: NativeChain;
let staker: Address;

beforeAll(async () => {
  chain = await NativeChain.open();
  staker = await chain.deploy(Staker.bytecode, { value: 50n * TOKEN });
  await chain.send(to(staking, "delegate", accountOf(2), operatorText(0), 10n * TOKEN));
});

afterAll(() => chain.close());

function to(contract: Published, name: string, ...args: unknown[]): Sent {
  return { to: contract.address, data: contract.abi.encodeFunctionData(name, args) };
}

async function send(sent: Sent) {
  const result = await chain.send(sent);
  expect(result.library).toEqual(result.own);
  return result;
}

const work = <Kind extends JobWork["kind"]>(job: Extract<JobWork, { kind: Kind }>) =>
  chain.work(job);

/** eth_call of a view, in ethers' words. */
const view = (contract: Published, name: string, ...args: unknown[]) =>
  chain.view(contract, name, args);

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
    const paid = chain.balance(elsewhere);
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
    const before = communityPool(chain.state());
    const coins = [["atoken", 3n * TOKEN]];
    const { events } = await send(to(distribution, "fundCommunityPool", accountOf(2), coins));
    expect(communityPool(chain.state())).toBe(before + 3n * TOKEN);
    expect(events.some(({ type }) => type === "coin_spent")).toBe(true);
    expect((await view(distribution, "communityPool"))[0][0][1]).toBe(
      (before + 3n * TOKEN) * TOKEN,
    );
    const validator = () => new Validators(chain.state()).of(accountOf(1));
    const was = validatorRewards(chain.state(), validator());
    const { own } = await chain.mine(
      to(distribution, "depositValidatorRewardsPool", accountOf(2), operatorText(1), coins),
    );
    const control =
      own?.journal.blockChanges.find(({ reason }) => reason === "MINT")?.amountAtoken ?? 0n;
    const now = validatorRewards(chain.state(), validator());
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
      chain.chain.genesis.modules?.slashing.signed_blocks_window,
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
    const result = await work({ kind: "call", request: request({ to: staker, data }) });
    if (result.outcome !== "success") throw new Error(result.outcome);
    const supply = chain.chain.stores.blocks.supply(chain.chain.view.head().height)?.totalAtoken;
    expect(
      stakerAbi.decodeFunctionResult("whoAmI", bytesToHex(result.returnData)).toArray(),
    ).toEqual([toBech32(staker), toChecksumAddress(staker), 50n * TOKEN, supply]);
    const coin = `0x${"ee".repeat(20)}`;
    expect(await view(bank, "supplyOf", coin)).toEqual([supply]);
    expect(await view(bank, "supplyOf", staker)).toEqual([0n]);
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

/** Creation code of a contract that hands its call data to `0x100` by an opcode, and gives what comes back. */
function codeAround(opcode: "f2" | "f4", value: "" | "34"): string {
  const asked = `365f5f375f5f365f${value}6101005a${opcode}3d5f5f3e`;
  const end = (asked.length / 2 + 6).toString(16);
  const code = `${asked}60${end}573d5ffd5b3d5ff3`;
  return `0x60${(code.length / 2).toString(16)}8060095f395ff3${code}`;
}

describe("p256", () => {
  /** go-ethereum, core/vm/testdata/precompiles/p256Verify.json. */
  const KNOWN =
    "0x4cee90eb86eaa050036147a12d49004b6b9c72bd725d39d4785011fe190f0b4da73bd4903f0ce3b639bbbf6e8e80d16931ff4bcf5993d58468e8fb19086e8cac36dbcd03009df8c59286b162af3bd7fcc0450c9aa81be5d10d312af6c66b1d604aebd3099c618202fcfe16ae7770b0c49ab5eadf74b754204a3bb6060e44eff37618b065f9832de4ca6ca971a7a1adc826d0f7c00181a5fb2ddf79ae00b4e10e";
  const ONE = `0x${"1".padStart(64, "0")}`;

  const ask = async (data: string, gasLimit = 100_000n) => {
    const result = await work({ kind: "call", request: request({ to: P256, data, gasLimit }) });
    return result.outcome === "success" ? bytesToHex(result.returnData) : result.outcome;
  };

  it("knows the published vector, costs 3,450 gas, and says nothing of anything else", async () => {
    expect(await ask(KNOWN)).toBe(ONE);
    expect(await ask(KNOWN.slice(0, -2))).toBe("0x");
    expect(await ask(`${KNOWN}00`)).toBe("0x");
    expect(await ask("0x")).toBe("0x");
    expect(await ask(`${KNOWN.slice(0, -2)}0f`)).toBe("0x");
    const bytes = hexToBytes(KNOWN);
    for (let word = 0; word < 5; word++) {
      const zeroed = bytes.slice();
      zeroed.fill(0, word * 32, (word + 1) * 32);
      expect([word, await ask(bytesToHex(zeroed))]).toEqual([word, "0x"]);
      const filled = bytes.slice();
      filled.fill(0xff, word * 32, (word + 1) * 32);
      expect([word, await ask(bytesToHex(filled))]).toEqual([word, "0x"]);
    }
    const data = bytes.reduce((gas, byte) => gas + (byte === 0 ? 4n : 16n), 21_000n);
    const { receipt } = await send({ to: P256, data: KNOWN, gasLimit: 200_000n });
    expect(receipt).toMatchObject({ status: 1, gasUsed: data + 3_450n });
    expect(await ask(KNOWN, data + 3_449n)).toBe("error");
  });

  it("answers a contract that lends its account, whatever coins that one was called with", async () => {
    const codes = { delegatecall: codeAround("f4", ""), callcode: codeAround("f2", "34") };
    for (const [name, code] of Object.entries(codes)) {
      const around = await chain.deploy(code);
      const asked = request({ to: around, data: KNOWN, value: 5n });
      const result = await work({ kind: "call", request: asked });
      expect([name, result]).toMatchObject([name, { outcome: "success" }]);
      expect([name, bytesToHex((result as { returnData: Uint8Array }).returnData)]).toEqual([
        name,
        ONE,
      ]);
      const { receipt } = await send({ to: around, data: KNOWN, value: 5n });
      expect([name, receipt.status, chain.balance(around)]).toEqual([name, 1, 5n]);
    }
  });

  it("takes those coins for its own by the first rules", async () => {
    const first = await NativeChain.open({}, FIRST_APP_VERSION);
    try {
      const around = await first.deploy(codeAround("f4", ""));
      const statuses = [];
      for (const value of [0n, 5n]) {
        const { receipt, own, library } = await first.send({ to: around, data: KNOWN, value });
        expect(library).toEqual(own);
        statuses.push(receipt.status);
      }
      expect(statuses).toEqual([1, 0]);
    } finally {
      await first.close();
    }
  });

  it("agrees with OpenSSL about fresh keys, high s included", () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    for (let round = 0; round < 10; round++) {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const message = Buffer.from(`message ${round}`);
      const signature = createSign("sha256")
        .update(message)
        .sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
      const { x = "", y = "" } = publicKey.export({ format: "jwk" });
      const key = Buffer.concat([Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
      const digest = sha256(message);
      const signed = { digest, publicKey: key };
      expect(verifyP256({ ...signed, signature })).toBe(true);
      const s = BigInt(`0x${signature.subarray(32).toString("hex")}`);
      const other = Buffer.from((order - s).toString(16).padStart(64, "0"), "hex");
      expect(
        verifyP256({ ...signed, signature: Buffer.concat([signature.subarray(0, 32), other]) }),
      ).toBe(true);
      expect(verifyP256({ ...signed, digest: digest.toReversed(), signature })).toBe(false);
    }
  });
});

describe("calls that are no transactions", () => {
  it("estimate what a transaction then needs", async () => {
    const sent = to(staking, "delegate", accountOf(2), operatorText(1), TOKEN);
    const { gas } = (await work({ kind: "estimateGas", request: request(sent) })) as {
      gas: bigint;
    };
    const { receipt } = await send({ ...sent, gasLimit: gas });
    expect(receipt.status).toBe(1);
    expect((gas - receipt.gasUsed) * 50n).toBeLessThanOrEqual(gas);
  });

  it("trace the contract as a frame, with its logs and everything that it touched", async () => {
    const data = stakerAbi.encodeFunctionData("stake", [operatorText(0), TOKEN]);
    const traced = async (trace: Extract<JobWork, { kind: "traceCall" }>["trace"]) => {
      const json = await work({ kind: "traceCall", request: request({ to: staker, data }), trace });
      return JSON.parse(Buffer.from(json).toString()) as never;
    };
    const frame = await traced({ tracer: "callTracer", onlyTopCall: false, withLog: true });
    const { calls } = frame as {
      calls: { to: string; type: string; logs?: unknown[]; input: string }[];
    };
    expect(calls.map((one) => [one.type, one.to])).toEqual([
      ["CALL", staking.address],
      ["STATICCALL", staking.address],
    ]);
    expect(calls[0]?.logs).toHaveLength(1);
    const state = await traced({
      tracer: "prestateTracer",
      diffMode: true,
      disableCode: true,
      disableStorage: false,
      includeEmpty: false,
    });
    const { pre, post } = state as Record<
      "pre" | "post",
      Record<string, { balance?: string; storage?: object }>
    >;
    const pool = MODULE_ACCOUNTS.staking;
    expect(BigInt(post[pool]?.balance ?? 0) - BigInt(pre[pool]?.balance ?? 0)).toBe(TOKEN);
    expect(Object.keys(post[pool]?.storage ?? {}).length).toBeGreaterThan(3);
  });

  it("list access, and simulate with coins that move as logs", async () => {
    const sent = to(staking, "delegate", accountOf(2), operatorText(1), TOKEN);
    const listed = await work({ kind: "createAccessList", request: request(sent) });
    expect(listed).toMatchObject({ accessList: [] });
    expect(listed.error).toBeUndefined();
    const json = await work({
      kind: "simulate",
      request: {
        blocks: [{ blockOverrides: {}, overrides: new Map(), calls: [request(sent)] }],
        traceTransfers: true,
        validation: false,
        returnFullTransactions: false,
      },
    });
    const [block] = JSON.parse(Buffer.from(json).toString("utf8"));
    expect(block.calls).toMatchObject([{ status: "0x1" }]);
    const coin = `0x${"ee".repeat(20)}`;
    const emitters = block.calls[0].logs.map(({ address }: { address: string }) => address);
    expect(emitters).toContain(coin);
  });

  it("see the modules' state as a client overrides it, and refuse to move a contract", async () => {
    const sent = to(distribution, "communityPool");
    const slot = `0x${"2".padStart(64, "0")}`;
    const overrides = new Map([
      [distribution.address, { stateDiff: new Map([[slot, 5n]]) }],
    ]) as never;
    const result = await work({ kind: "call", request: request(sent), overrides });
    if (result.outcome !== "success") throw new Error(result.outcome);
    const [[[, amount]]] = distribution.abi.decodeFunctionResult(
      "communityPool",
      bytesToHex(result.returnData),
    );
    expect(amount).toBe(5n * TOKEN);
    const moving = new Map([[distribution.address, { movePrecompileTo: accountOf(4) }]]) as never;
    await expect(work({ kind: "call", request: request(sent), overrides: moving })).rejects.toThrow(
      "cannot move",
    );
  });

  it("say what is wrong with state that no chain has, where a client overrides it so", async () => {
    const pool = to(distribution, "communityPool");
    const claim = {
      ...to(distribution, "withdrawDelegatorRewards", accountOf(0), operatorText(0)),
      from: 0,
    };
    const plain = to(bech32, "hexToBech32", accountOf(2), "addr");
    const slot = (place: bigint) => `0x${place.toString(16).padStart(64, "0")}`;
    const under = (place: bigint, value: bigint) =>
      new Map([[distribution.address, { stateDiff: new Map([[slot(place), value]]) }]]) as never;
    const tooMuch = under(2n, 2n ** 255n);
    // What a validator's delegators can still claim is less than what one of them is owed.
    const owed = mapSlot(3n, addressWord(accountOf(0))) + 2n;
    const fault = { code: "INVALID_OVERRIDE", message: expect.stringMatching(/^the chain's own/) };
    const callTracer = { tracer: "callTracer", onlyTopCall: false, withLog: false } as const;
    const jobs = [
      { kind: "call", request: request(pool), overrides: tooMuch },
      { kind: "call", request: request(claim), overrides: under(owed, 0n) },
      { kind: "estimateGas", request: request(pool), overrides: tooMuch },
      { kind: "createAccessList", request: request(pool), overrides: tooMuch },
      { kind: "traceCall", request: request(pool), overrides: tooMuch, trace: callTracer },
      {
        kind: "simulate",
        request: {
          blocks: [{ blockOverrides: {}, overrides: tooMuch, calls: [request(pool)] }],
          traceTransfers: false,
          validation: false,
          returnFullTransactions: false,
        },
      },
    ] as const;
    for (const job of jobs) await expect(work(job)).rejects.toMatchObject(fault);
    const unaffected = await work({ kind: "call", request: request(plain), overrides: tooMuch });
    expect(unaffected).toMatchObject({ outcome: "success" });
  });

  it("keep a balance that a client overrides in a word, whatever it is paid on top", async () => {
    const holder = accountOf(4);
    const question = bank.abi.encodeFunctionData("balances", [holder]).slice(2);
    const length = (question.length / 2).toString(16);
    const returnWord = "5f5260205ff3";
    // Whether it has nothing; and whether the bank answers about it, asked by what stands behind the code.
    const isEmpty = `4715${returnWord}`;
    const isAnswered =
      `60${length}60285f395f5f60${length}5f73${bank.address.slice(2)}5afa${returnWord}` + question;
    for (const code of [isEmpty, isAnswered]) {
      const overrides = new Map([
        [accountOf(2), { balanceAtoken: 1n }],
        [holder, { balanceAtoken: 2n ** 256n - 1n, code: parseHexBytes(`0x${code}`) }],
      ]) as never;
      const sent = request({ to: holder, value: 1n });
      const result = await work({ kind: "call", request: sent, overrides });
      if (result.outcome !== "success") throw new Error(result.outcome);
      // As go-ethereum: 2^256 is 0.
      expect(bytesToBigint(result.returnData)).toBe(1n);
    }
  });

  it("let stake go at a time for which there is no text", async () => {
    const sent = to(staking, "undelegate", accountOf(2), operatorText(0), TOKEN);
    const result = await work({
      kind: "call",
      request: request(sent),
      blockOverrides: { timestampSeconds: Number.MAX_SAFE_INTEGER },
    });
    expect(result).toMatchObject({ outcome: "success" });
  });
});
