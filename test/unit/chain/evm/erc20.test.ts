/** ERC-20 on the wire, against ethers' ABI coder. */
import { describe, expect, it } from "@jest/globals";
import { id, Interface } from "ethers";
import * as fc from "fast-check";
import { type Address, parseAddress } from "../../../../chain/address.js";
import {
  decodeTransfer,
  decodeUnits,
  encodeBalanceOf,
  encodeTransfer,
  ERC20_SELECTORS,
  ERC20_TOPICS,
} from "../../../../chain/evm/erc20.js";
import type { Hex } from "../../../../chain/hex.js";

const ABI = new Interface([
  "function balanceOf(address) view returns (uint256)",
  "function transfer(address,uint256) returns (bool)",
]);

const anyAddress = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes): Address => parseAddress(`0x${Buffer.from(bytes).toString("hex")}`));

describe("ERC-20", () => {
  it("has the selectors and topics of its signatures", () => {
    const selector = (signature: string) => id(signature).slice(0, 10);
    expect(ERC20_SELECTORS).toEqual({
      balanceOf: selector("balanceOf(address)"),
      decimals: selector("decimals()"),
      name: selector("name()"),
      symbol: selector("symbol()"),
      totalSupply: selector("totalSupply()"),
      transfer: selector("transfer(address,uint256)"),
    });
    expect(ERC20_TOPICS).toEqual({
      transfer: id("Transfer(address,address,uint256)"),
      deposit: id("Deposit(address,uint256)"),
      withdrawal: id("Withdrawal(address,uint256)"),
    });
  });

  it("encodes and decodes calls as ethers does", () => {
    fc.assert(
      fc.property(anyAddress, fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), (to, amountUnits) => {
        expect(encodeBalanceOf(to)).toBe(ABI.encodeFunctionData("balanceOf", [to]));
        const data = ABI.encodeFunctionData("transfer", [to, amountUnits]) as Hex;
        expect(encodeTransfer({ to, amountUnits })).toBe(data);
        expect(decodeTransfer(data)).toEqual({ to, amountUnits });
      }),
    );
  });

  it("reads only the very bytes of a transfer", () => {
    const to = parseAddress(`0x${"ab".repeat(20)}`);
    const data = encodeTransfer({ to, amountUnits: 5n });
    expect(decodeTransfer(`${data}00`)).toBeUndefined();
    expect(decodeTransfer(data.slice(0, -2) as Hex)).toBeUndefined();
    expect(decodeTransfer(`${data.slice(0, 10)}01${data.slice(12)}` as Hex)).toBeUndefined();
    expect(decodeTransfer(`0x00${data.slice(4)}` as Hex)).toBeUndefined();
    expect(decodeUnits(`0x${"0".repeat(63)}7`)).toBe(7n);
    expect(decodeUnits("0x07")).toBeUndefined();
    expect(decodeUnits("0x")).toBeUndefined();
  });
});
