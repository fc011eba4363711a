/** 0x804: balances and supply of the chain's coin. */
import { type Address, parseAddress } from "../../../chain/address.js";
import { abiNative, refusal } from "./abi-native.js";
import { BANK as ABI } from "./native-abis.js";
import type { NativeCall } from "./native-call.js";

/** ERC-7528: stands for the native coin where an address of a token is asked for. */
const NATIVE_COIN: Address = parseAddress(`0x${"ee".repeat(20)}`);

/** The contract. */
export const BANK = abiNative({
  abi: ABI,
  functions: {
    balances: (args, call) => {
      const account = args.address("account");
      call.touch(account);
      const amount = call.host.state.accountNow(account)?.balanceAtoken ?? 0n;
      return [amount === 0n ? [] : [{ contractAddress: NATIVE_COIN, amount }]];
    },
    totalSupply: (_args, call) => [[{ contractAddress: NATIVE_COIN, amount: supplyOf(call) }]],
    supplyOf: (args, call) => [args.address("erc20Address") === NATIVE_COIN ? supplyOf(call) : 0n],
  },
});

function supplyOf({ host }: NativeCall): bigint {
  const { totalSupplyAtoken } = host.facts;
  if (totalSupplyAtoken === undefined)
    throw refusal("the supply of that block is not kept any more");
  return totalSupplyAtoken;
}
