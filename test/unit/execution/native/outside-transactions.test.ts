/**
 * The chain's own contracts in calls that are no transactions: estimates, traces, simulations,
 * overridden state.
 */
import { describe, expect, it } from "@jest/globals";
import { bytesToBigint, bytesToHex, parseHexBytes } from "../../../../chain/hex.js";
import type { JobWork } from "../../../../node/execution/calls/call-protocol.js";
import { addressWord, mapSlot, MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import {
  accountOf,
  operatorText,
  published,
  request,
} from "../../../helpers/chains/native-chain.js";
import { chainForTests, stakerAbi, to, TOKEN } from "./stakers-chain.js";

const staking = published("IStaking");
const distribution = published("IDistribution");
const bank = published("IBank");
const bech32 = published("IBech32");
const native = chainForTests();
const { send, work } = native;

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
      const json = await work({
        kind: "traceCall",
        request: request({ to: native.staker, data }),
        trace,
      });
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
