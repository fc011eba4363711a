/** Many balances of a token by one call, over a real chain; each asked by itself, and ethers, are the oracles. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  Contract,
  ContractFactory,
  getCreateAddress,
  Interface,
  JsonRpcProvider,
  Wallet,
} from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import type { JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { tokenCalls } from "../../../rpc-client/tokens/token-balances.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { createPatientClient } from "../../helpers/exchange/patient-node.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";

const wallet = new Wallet(`0x${"11".repeat(32)}`);
const tokenAt = (nonce: number) => parseAddress(getCreateAddress({ from: wallet.address, nonce }));
const compiled = compileFixture("Balances.sol")["Balances"];
if (compiled === undefined) throw new Error("fixture did not compile");
const { bytecode } = compiled;
const abi = new Interface(JSON.stringify(compiled.abi));
const { signal } = new AbortController();

const accountAt = (index: number) =>
  parseAddress(`0x${"51".repeat(18)}${(index + 1).toString(16).padStart(4, "0")}`);
const accounts = Array.from({ length: 450 }, (_, index) => accountAt(index));
/** Every forty-fifth account holds some. */
const holders = accounts.filter((_, index) => index % 45 === 0);
const MODES = ["Honest", "Reverts", "BurnsAllGas", "AnswersShort", "AnswersLong", "AnswersHuge"];

/** Runtime code that answers who called it, and code that answers how much gas it was given. */
const ANSWERS_CALLER = "0x3360005260206000f3";
const ANSWERS_GAS = "0x5a60005260206000f3";

/** Code that puts runtime code of less than 32 bytes in place. */
function creationOf(runtime: string): string {
  const code = runtime.slice(2);
  const size = (code.length / 2).toString(16).padStart(2, "0");
  return `0x60${size}600c60003960${size}6000f3${code}`;
}

describe("balances of many accounts", () => {
  let served: ServedChain;
  let rpc: JsonRpcClient;
  let requests: number;
  let provider: JsonRpcProvider;
  let nonce = 0;
  const send = (to: Address | null, data: string) =>
    wallet.signTransaction({
      type: 0,
      chainId: 6940,
      gasPrice: 25_000_000n,
      gasLimit: 1_000_000n,
      nonce: nonce++,
      to,
      data,
    });
  const token = tokenAt(0);

  beforeAll(async () => {
    served = await ServedChain.open(testGenesis(wallet.address));
    const { data } = await new ContractFactory(abi, bytecode).getDeployTransaction();
    const codes = [ANSWERS_CALLER, ANSWERS_GAS].map(creationOf);
    await served.mine([
      await send(null, data),
      ...(await Promise.all(codes.map((code) => send(null, code)))),
    ]);
    const mints = holders.map((holder, index) =>
      send(token, abi.encodeFunctionData("mint", [holder, 2n ** BigInt(20 * index) + 7n])),
    );
    await served.mine(await Promise.all(mints));
    // One block for each way not to answer.
    for (const mode of MODES.keys()) {
      if (mode > 0)
        await served.mine([await send(token, abi.encodeFunctionData("setMode", [mode]))]);
    }
    const inner = createPatientClient(served.url);
    rpc = {
      ...inner,
      request: (method, params, options) => {
        requests += 1;
        return inner.request(method, params, options);
      },
      batch: (calls, options) => {
        requests += 1;
        return inner.batch(calls, options);
      },
    };
    provider = new JsonRpcProvider(served.url, 6940, { staticNetwork: true });
  });
  afterAll(async () => {
    provider.destroy();
    rpc.close();
    await served.close();
  });

  const queriesOf = (contract: Address, at: number) =>
    accounts.map((account) => ({ token: contract, account, at }));

  it("are what each is by itself, in a sixth of the requests", async () => {
    const calls = tokenCalls(rpc);
    requests = 0;
    const units = await calls.tokenBalances(queriesOf(token, 2), { signal });
    expect(requests).toBe(3);
    const alone = await calls.tokenBalanceAnswers(queriesOf(token, 2), { signal });
    expect(requests).toBe(3 + accounts.length / 25);
    expect(units).toEqual(alone.map((answer) => answer.ok && answer.units));
    const contract = new Contract(token, abi, provider);
    for (const holder of holders) {
      const theirs: unknown = await contract["balanceOf"]?.(holder, { blockTag: 2 });
      expect(units[accounts.indexOf(holder)]).toBe(theirs);
    }
    expect(units.filter((own) => own === 0n)).toHaveLength(accounts.length - holders.length);
    // Before the tokens were there, and before the contract was.
    expect(await calls.tokenBalances(queriesOf(token, 1), { signal })).toEqual(
      accounts.map(() => 0n),
    );
    expect(await calls.tokenBalances(queriesOf(token, 0), { signal })).toEqual(
      accounts.map(() => undefined),
    );
  });

  it.each(MODES.slice(1).map((mode, index) => ({ mode, height: 3 + index })))(
    "are undefined where the contract is one that $mode",
    async ({ height }) => {
      const few = queriesOf(token, height).slice(0, 60);
      const units = await tokenCalls(rpc).tokenBalances(few, { signal });
      expect(units).toEqual(few.map(() => undefined));
    },
  );

  it("are asked as by the same caller, and never by less gas than is told", async () => {
    const calls = tokenCalls(rpc);
    const byCaller = await calls.tokenBalances(queriesOf(tokenAt(1), 2), { signal });
    expect(new Set(byCaller)).toEqual(new Set([0n]));
    const [alone] = await calls.tokenBalanceAnswers(queriesOf(tokenAt(1), 2).slice(0, 1), {
      signal,
    });
    expect(alone).toEqual({ ok: true, units: 0n });
    const gas = await calls.tokenBalances(queriesOf(tokenAt(2), 2), { signal });
    // GAS counts itself: 2.
    expect(new Set(gas)).toEqual(new Set([78_000n - 2n]));
  });

  it("leave it to the node to refuse a state that it does not have", async () => {
    const query = tokenCalls(rpc).tokenBalances(queriesOf(token, 99), { signal });
    await expect(query).rejects.toMatchObject({ code: "RPC_ERROR" });
  });
});
