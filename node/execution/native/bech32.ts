/** 0x400: an account as bech32 and back. */
import { bytesToAddress, bytesToBech32, readBech32 } from "../../../chain/address.js";
import { ChainError } from "../../../chain/errors.js";
import { abiNative, refusal } from "./abi-native.js";
import { BECH32 as ABI } from "./native-abis.js";

/** Most characters of a bech32 text (BIP-173). */
const MAX_CHARACTERS = 90;

/** The contract. */
export const BECH32 = abiNative({
  abi: ABI,
  isPure: true,
  functions: {
    hexToBech32: (args) => {
      const prefix = args.text("prefix");
      const account = args.address("addr");
      return [
        read("bech32 human readable prefix (HRP)", prefix, () => bytesToBech32(account, prefix)),
      ];
    },
    bech32ToHex: (args) => {
      const text = args.text("bech32Address");
      return [read("bech32 address", text, () => bytesToAddress(readBech32(text).bytes))];
    },
  },
});

function read(what: string, text: string, convert: () => string): string {
  try {
    if (text.length <= MAX_CHARACTERS) return convert();
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
  }
  throw refusal(`invalid ${what}: ${text.slice(0, MAX_CHARACTERS)}`);
}
