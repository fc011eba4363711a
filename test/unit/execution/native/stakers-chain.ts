/** The chain's own contracts, called by accounts and by a contract that has stake. */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { Interface } from "ethers";
import type { Address } from "../../../../chain/address.js";
import type { JobWork } from "../../../../node/execution/calls/call-protocol.js";
import {
  accountOf,
  NativeChain,
  operatorText,
  published,
  type Sent,
} from "../../../helpers/chains/native-chain.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";

/** A TOKEN. */
export const TOKEN = 10n ** 18n;
const staking = published("IStaking");
type Published = typeof staking;

const { Staker } = compileFixture("NativeCallers.sol");
if (Staker === undefined) throw new Error("not compiled");
const { bytecode } = Staker;

/** The contract that stakes for itself. */
export const stakerAbi = new Interface(Staker.abi);

/** A call of one of the chain's own contracts. */
export function to(contract: Published, name: string, ...args: unknown[]): Sent {
  return { to: contract.address, data: contract.abi.encodeFunctionData(name, args) };
}

/** The chain, for all tests of a file. */
export function chainForTests() {
  let chain: NativeChain;
  let staker: Address;

  beforeAll(async () => {
    chain = await NativeChain.open();
    staker = await chain.deploy(bytecode, { value: 50n * TOKEN });
    await chain.send(to(staking, "delegate", accountOf(2), operatorText(0), 10n * TOKEN));
  });

  afterAll(() => chain.close());

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

  return {
    get chain() {
      return chain;
    },
    get staker() {
      return staker;
    },
    send,
    work,
    view,
  };
}
