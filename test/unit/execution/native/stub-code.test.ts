/** Accounts of the chain that have code: docs/precompiles.md names them, and says what calls of them do. */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { present } from "../../../../chain/errors.js";
import { bytesToHex } from "../../../../chain/hex.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { MODULE_ACCOUNTS, MODULE_STUB_CODE } from "../../../../node/modules/system-storage.js";
import { NativeChain, published, request } from "../../../helpers/chains/native-chain.js";
import { ModuleChain, stakedGenesis } from "../../../helpers/cosmos/module-state.js";

const page = fs.readFileSync("docs/precompiles.md", "utf8").replaceAll(/\s+/g, " ");
const codeOfAll = present(/`eth_getCode` shows(.*?)of chains with stake/.exec(page)?.[1], "codes");
const storageOfAll = present(
  /The storage of (.*?) is the modules' state/.exec(page)?.[1],
  "storage",
);

/** Addresses of a sentence; the page has short ones. */
function addressesIn(sentence: string): string[] {
  return [...sentence.matchAll(/`0x([0-9a-f]{3})`/g)]
    .map(([, digits = ""]) => parseAddress(`0x${digits.padStart(40, "0")}`))
    .toSorted();
}

describe("the page about the chain's own contracts", () => {
  it("names each account that has code, and each whose storage is a module's state", () => {
    const { state } = new ModuleChain(stakedGenesis([100]));
    const stub = keccak256Hex(MODULE_STUB_CODE);
    const withCode = [...state.changedAccounts()]
      .filter(([, { after }]) => after?.codeHash === stub)
      .map(([address]) => address);
    expect(addressesIn(codeOfAll)).toEqual(withCode.toSorted());
    expect(addressesIn(storageOfAll)).toEqual(Object.values(MODULE_ACCOUNTS).toSorted());
    expect(codeOfAll).toContain(`\`${bytesToHex(MODULE_STUB_CODE)}\``);
  });

  it("says of which the code runs: a call or payment reverts there, without a reason", async () => {
    const chain = await NativeChain.open();
    try {
      const { abi } = published("IStaking");
      const outcomeAt = async (to: string, value: bigint) => {
        const result = await chain.work({ kind: "call", request: request({ to, value }) });
        const data = result.outcome === "revert" ? bytesToHex(result.returnData) : undefined;
        return data === "0x" ? "no reason" : String(abi.parseError(data ?? "0x")?.args[0]);
      };
      for (const address of addressesIn(codeOfAll)) {
        const isOfUpgrades = address === MODULE_ACCOUNTS.upgrade;
        for (const value of [0n, 5n]) {
          const outcome = await outcomeAt(address, value);
          expect([address, value, outcome === "no reason"]).toEqual([address, value, isOfUpgrades]);
        }
      }
      expect(await outcomeAt(MODULE_ACCOUNTS.vesting, 0n)).toContain("this address is reserved");
    } finally {
      await chain.close();
    }
  });
});
