import { describe, expect, it } from "@jest/globals";
import { getAddress, HDNodeWallet, Mnemonic } from "ethers";
import { publicKeyToAddress, toChecksumAddress } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { createAddressDerivation } from "../../../chain/derivation/address-derivation.js";
import {
  derivationByIntegers,
  derivationByLibrary,
  parseExtendedPublicKey,
} from "../../../chain/derivation/child-key.js";

const PHRASE = "test test test test test test test test test test test junk";
const account = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PHRASE), "m/44'/60'/0'/0");
const xpub = account.neuter().extendedKey;

describe("deposit addresses", () => {
  it("are the ones that wallets derive from the same seed (source: ethers, hardhat's accounts)", () => {
    const derivation = createAddressDerivation(xpub);
    expect(toChecksumAddress(derivation.addressAt(0))).toBe(
      "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    );
    for (const index of [0, 1, 2, 19, 20, 1_000, 65_536, 2 ** 31 - 1]) {
      const expected = account.deriveChild(index).address;
      expect([index, getAddress(derivation.addressAt(index))]).toEqual([index, expected]);
    }
  });

  it.each([
    ["libraries", derivationByLibrary],
    ["integers", (text: string) => derivationByIntegers(parseExtendedPublicKey(text))],
  ])("come out the same on each path alone, for many random parents: %s", (_path, derivationOf) => {
    for (let round = 0; round < 20; round += 1) {
      const parent = HDNodeWallet.createRandom(undefined, "m/44'/60'/0'/0");
      const { extendedKey } = parent.neuter();
      const address = publicKeyToAddress(derivationOf(extendedKey).childAt(round));
      expect([round, getAddress(address)]).toEqual([round, parent.deriveChild(round).address]);
    }
  });

  it("refuse a damaged key, a private key, another depth and an index out of range", () => {
    const damaged = `${xpub.slice(0, -1)}${xpub.endsWith("1") ? "2" : "1"}`;
    const master = HDNodeWallet.fromSeed(hexToBytes(`0x${"07".repeat(32)}`)).neuter().extendedKey;
    for (const text of [damaged, account.extendedKey, master, "", "xpub"]) {
      expect(() => createAddressDerivation(text)).toThrow(
        expect.objectContaining({ code: "INVALID_XPUB" }),
      );
    }
    const derivation = createAddressDerivation(xpub);
    for (const index of [-1, 2 ** 31, 0.5, Number.NaN]) {
      expect(() => derivation.addressAt(index)).toThrow(
        expect.objectContaining({ code: "INVALID_XPUB" }),
      );
    }
  });
});
